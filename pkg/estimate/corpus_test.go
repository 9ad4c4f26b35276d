package estimate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/estimate"
)

const committed = "testdata/corpus.jsonl"

var (
	rewrite = flag.Bool("rewrite", false, "write the table of TestErrorsOverCorpus into docs/tokens.md")
	corpus  = flag.String("corpus", committed, "requests to measure the errors over")
)

// written is a request of the corpus, which hack/corpus.py has made.
type written struct {
	Kind   string
	Tokens int64 // of its prompt
	Body   string
}

// images is the kind of requests that have a picture in their body.
const images = "chat with an image"

func readCorpus(t *testing.T) (all []written) {
	text, err := os.ReadFile(*corpus)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var w written
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

// way is a way to estimate the length of a prompt.
type way struct {
	name string
	// size sets what is known of a request.
	size func(w written, r *estimate.Request)
	// flow returns the flow that a request belongs to; nil if nothing is learned.
	flow func(w written) string
}

func byText(w written, r *estimate.Request) {
	var f body.Fields
	if err := f.Scan([]byte(w.Body)); err != nil {
		panic(err)
	}
	r.Text, r.Numbers, r.Length = f.Prompt.Text, f.Prompt.Numbers+f.Prompt.Frames, int64(len(w.Body))
}

func byLength(w written, r *estimate.Request) { r.Length = int64(len(w.Body)) }

func ofItsKind(w written) string { return w.Kind }

func ofItsModel(written) string { return "llama" }

var ways = []way{
	{"an exact count in a trusted header", func(w written, r *estimate.Request) { r.Tokens = w.Tokens }, ofItsKind},
	{"the body's text, a flow's ratio learned", byText, ofItsKind},
	{"the body's text, all kinds in one flow", byText, ofItsModel},
	{"the body's text, nothing learned", byText, nil},
	{"the content length, a flow's ratio and overhead learned", byLength, ofItsKind},
	{"the content length, nothing learned", byLength, nil},
	{"Envoy's request_info, at 0.25 tokens a byte", func(w written, r *estimate.Request) {
		r.Tokens = int64(math.Ceil(float64(len(w.Body)) / 4))
	}, nil},
}

// errors returns by how much the estimates of this way are wrong, as parts of the real lengths, by kind. Where something is
// learned, the first half of the corpus only teaches.
func (way way) errors(all []written) map[string][]float64 {
	e := estimate.New(estimate.DefaultConfig())
	wrong := map[string][]float64{}
	for i, w := range all {
		r := &estimate.Request{
			Model: "llama", Tokens: estimate.Unknown, Text: estimate.Unknown, Length: estimate.Unknown, Answers: 1,
			MaxOutput: estimate.Unknown,
		}
		if way.flow != nil {
			r.Flow = way.flow(w)
		}
		way.size(w, r)
		got := e.Estimate(r).Input
		if way.flow != nil {
			e.Learn(r, estimate.Usage{Input: w.Tokens, Output: 100}, 0)
		}
		if i >= len(all)/2 {
			wrong[w.Kind] = append(wrong[w.Kind], math.Abs(float64(got-w.Tokens))/float64(w.Tokens))
		}
	}
	return wrong
}

// columns returns the mean and the 90th percentile, in whole percents, as columns of a table.
func columns(wrong []float64) string {
	slices.Sort(wrong)
	sum := 0.0
	for _, x := range wrong {
		sum += x
	}
	return fmt.Sprintf("| %.0f %% | %.0f %% ", 100*sum/float64(len(wrong)), 100*wrong[(len(wrong)*9+9)/10-1])
}

// The page has how wrong each way to estimate the length of a prompt is, and with -v this says it by kind of requests, too.
func TestErrorsOverCorpus(t *testing.T) {
	all := readCorpus(t)
	table := "| source | mean error | 9 of 10 within | mean with images | 9 of 10 within |\n|---|---|---|---|---|\n"
	for _, way := range ways {
		byKind := way.errors(all)
		var wrong []float64
		details := ""
		for _, kind := range slices.Sorted(maps.Keys(byKind)) {
			details += "| " + kind + " " + columns(byKind[kind]) + "|\n"
			if kind != images {
				wrong = append(wrong, byKind[kind]...)
			}
		}
		t.Logf("%s\n%s", way.name, details)
		table += "| " + way.name + " " + columns(wrong) + columns(byKind[images]) + "|\n"
	}
	t.Logf("\n%s", table)
	if *corpus != committed {
		return
	}
	const page = "../../docs/tokens.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "| source | mean error |")
	_, after, found := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("%s has no table of errors", page)
	}
	if want := before + table + "\n" + after; *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s has another table; run this test with -rewrite", page)
	}
}
