package status

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The columns of each table, and the cells of a row.
var (
	TierColumns   = []string{"tier", "waiting", "in flight", "p50", "p90", "p99", "displaced", "promoted"}
	EngineColumns = []string{"engine", "state", "fill", "in flight", "waits", "rate/s", "fail/s", "service", "oldest", "kv", "4xx/s"}
	FlowColumns   = []string{"flow", "tier", "waiting", "since", "for", "in flight", "entitled", "attained", "rate/s", "reject/s"}
	RejectColumns = []string{"rejected", "outcome", "flow", "tier", "model", "limit"}
)

// Cells returns the cells of a tier.
func (t *Tier) Cells() []string {
	wait := func(seconds float64) string {
		if t.Waits == 0 {
			return "-"
		}
		return span(seconds)
	}
	return []string{
		Plain(t.Name), fmt.Sprintf("%d/%d", t.Waiting, t.Limit), strconv.Itoa(t.InFlight), wait(t.Median), wait(t.P90), wait(t.P99),
		strconv.FormatUint(t.Displaced, 10), strconv.FormatUint(t.Promotions, 10),
	}
}

// Cells returns the cells of an engine.
func (e *Engine) Cells(rated bool) []string {
	inFlight, waits, cache := strconv.Itoa(e.InFlight+e.Foreign), "-", "-"
	if e.Bound != nil {
		inFlight += "/" + strconv.FormatFloat(*e.Bound, 'f', -1, 64)
	}
	if e.Metrics != nil {
		waits, cache = strconv.Itoa(e.Metrics.Waiting), share(&e.Metrics.Cache)
	}
	return []string{
		Plain(e.Address), e.State(), share(e.Fill), inFlight, waits, rate(&e.Answers, rated), rate(&e.Failures, rated),
		orDash(e.Service), orDash(e.Oldest), cache, rate(&e.Refused, rated),
	}
}

// State returns one word for the engine's health.
func (e *Engine) State() string {
	switch {
	case !e.Ready:
		return "down"
	case e.Circuit != "" && !strings.HasPrefix(e.Circuit, "closed"): // also with failures that hold slots
		return Plain(e.Circuit)
	}
	return "ready"
}

// Cells returns the cells of a flow.
func (f *Flow) Cells(rated bool) []string {
	since := "-"
	if f.Waiting > 0 {
		since = span(f.Since)
	}
	return []string{
		Plain(f.Flow), Plain(cmp.Or(f.Tier, "-")), strconv.Itoa(f.Waiting), since, Plain(cmp.Or(f.Why, "-")), strconv.Itoa(f.InFlight), share(f.Entitled),
		share(f.Attained), rate(f.Requests, rated), rate(f.Rejected, rated),
	}
}

// Cells returns the cells of a rejection.
func (r *Rejection) Cells(now time.Time) []string {
	return []string{
		span(max(0, now.Sub(r.At).Seconds())) + " ago", Plain(r.Outcome), Plain(cmp.Or(r.Flow, "-")), Plain(cmp.Or(r.Tier, "-")), Plain(cmp.Or(r.Model, "-")),
		r.limit(),
	}
}

// RejectionRows returns the cells of the rejections, newest first. Those that differ only in their time and in the
// limit's holders are one row, that of the newest, with their number behind the outcome.
func (d *Document) RejectionRows() (rows [][]string) {
	type kind struct{ outcome, flow, tier, model, limit string }
	at, counts := map[kind]int{}, []int(nil)
	for i := range d.Rejections {
		r := &d.Rejections[i]
		k := kind{r.Outcome, r.Flow, r.Tier, r.Model, r.Limit}
		if row, known := at[k]; known {
			counts[row]++
			continue
		}
		at[k] = len(rows)
		rows, counts = append(rows, r.Cells(d.At)), append(counts, 1)
	}
	for row, n := range counts {
		if n > 1 {
			rows[row][1] += fmt.Sprintf(" ×%d", n)
		}
	}
	return rows
}

// limit returns the rejecting limit with its value, and the flows that held most of it.
func (r *Rejection) limit() string {
	text := Plain(cmp.Or(r.Limit, "-"))
	if r.LimitValue > 0 { // an earlier epp sends no text
		text += " " + Plain(cmp.Or(r.LimitText, strconv.FormatInt(r.LimitValue, 10)))
	}
	if r.Holders != nil {
		text += ", held by " + holders(r.Holders)
	}
	return text
}

func holders(of []Holder) string {
	var held []string
	for _, h := range of {
		who := Plain(h.Flow)
		if h.User != "" {
			who += " (" + Plain(h.User) + ")"
		}
		held = append(held, who+" "+strconv.FormatInt(h.Held, 10))
	}
	return strings.Join(held, ", ")
}

func share(of *float64) string {
	if of == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", *of*100)
}

func rate(of *float64, rated bool) string {
	if of == nil || !rated {
		return "-"
	}
	return strconv.FormatFloat(*of, 'f', 1, 64)
}

func orDash(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return span(seconds)
}

// span returns a length of time with two or three digits.
func span(seconds float64) string {
	switch {
	case seconds < 1:
		return fmt.Sprintf("%.0fms", seconds*1000)
	case seconds < 10:
		return fmt.Sprintf("%.1fs", seconds)
	case seconds < 600:
		return fmt.Sprintf("%.0fs", seconds)
	case seconds < 36_000:
		return fmt.Sprintf("%.0fm", seconds/60)
	}
	return fmt.Sprintf("%.0fh", seconds/3600)
}
