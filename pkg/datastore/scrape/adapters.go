package scrape

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// adapterMetric is vLLM's metric with the running LoRA adapters in its labels; Names.Adapters replaces it with another
// metric with the same labels. Its value is a time: each change of the labels makes a new series, and the newest one
// counts.
const adapterMetric = "vllm:lora_requests_info"

// longestName is the longest counted name of an adapter, in bytes.
const longestName = 256

// adapterLine is the newest series of the adapter metric on a page.
type adapterLine struct {
	name   string
	wanted []label // required of a series
	at     float64
	labels []byte
}

// lineOf returns the line of a metric, NAME or NAME{LABEL="VALUE",…}; empty: of adapterMetric.
func lineOf(metric string) adapterLine {
	name, wanted, _ := parseName(cmp.Or(metric, adapterMetric)) // validated
	return adapterLine{name: name, wanted: wanted}
}

// begin forgets the last page.
func (a *adapterLine) begin() { a.at, a.labels = 0, a.labels[:0] }

// take takes a series if it is newer than those before it.
func (a *adapterLine) take(labels, value []byte) {
	if !haveAll(labels, a.wanted) {
		return
	}
	if at, ok := number(value); ok && at >= a.at && len(labels) > 0 {
		a.at, a.labels = at, append(a.labels[:0], labels...)
	}
}

// state returns the state from the series; nil: none.
func (a *adapterLine) state() *scheduling.AdapterState {
	if len(a.labels) == 0 {
		return nil
	}
	s := &scheduling.AdapterState{}
	if text, ok := labelOf(a.labels, "max_lora"); ok {
		if n, ok := number(text); ok {
			s.Places = int(min(n, scheduling.MaxAdapters))
		}
	}
	for _, label := range []string{"running_lora_adapters", "waiting_lora_adapters"} {
		text, _ := labelOf(a.labels, label)
		for name := range bytes.SplitSeq(text, []byte(",")) {
			if name = bytes.TrimSpace(name); len(name) > 0 && len(name) <= longestName && len(s.Loaded) < scheduling.MaxAdapters {
				s.Loaded = append(s.Loaded, unescaped.Replace(string(name)))
			}
		}
	}
	slices.Sort(s.Loaded)
	s.Loaded = slices.Compact(s.Loaded)
	return s
}

// unescaped undoes the text format's escapes in the value of a label.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// sameAdapters reports whether two statements are equal.
func sameAdapters(a, b *scheduling.AdapterState) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Places == b.Places && slices.Equal(a.Loaded, b.Loaded)
}
