package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Ended is a request that has ended: a line of /debug/tail. A line with Dropped is the last one.
type Ended struct {
	At          time.Time `json:"at"`
	ID          string    `json:"id,omitempty"`
	Flow        string    `json:"flow"`
	Tier        string    `json:"tier,omitempty"`
	Model       string    `json:"model,omitempty"`
	TargetModel string    `json:"targetModel,omitempty"`
	Wait        float64   `json:"waitSeconds"`
	Bypass      bool      `json:"bypass"`
	Endpoint    string    `json:"endpoint,omitempty"`
	Served      string    `json:"served,omitempty"`
	Outcome     string    `json:"outcome"`
	Status      int       `json:"status"`
	After       float64   `json:"seconds"`
	Error       string    `json:"error,omitempty"`
	RetryAfter  float64   `json:"retryAfterSeconds,omitempty"`
	Usage       *Usage    `json:"usage,omitempty"`
	// Dropped is the reason why there are no further lines; "" for a request.
	Dropped string `json:"dropped,omitempty"`
}

// Usage is the numbers of tokens reported by an answer.
type Usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Cached int64 `json:"cached"`
}

// Line returns the request as one line for people.
func (e *Ended) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-18s %3d flow=%s", e.At.UTC().Format("15:04:05.000"), Plain(e.Outcome), e.Status, Plain(cmp.Or(e.Flow, "-")))
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s=%s", name, Plain(value))
		}
	}
	add("tier", e.Tier)
	add("model", e.Model)
	if e.TargetModel != e.Model {
		add("target", e.TargetModel)
	}
	add("wait", span(e.Wait))
	add("took", span(e.After))
	add("endpoint", e.Endpoint)
	add("served", e.Served)
	if e.Usage != nil {
		add("tokens", fmt.Sprintf("%d+%d", e.Usage.Input, e.Usage.Output))
	}
	if e.RetryAfter > 0 {
		add("retry-after", span(e.RetryAfter))
	}
	add("id", e.ID)
	if e.Error != "" {
		fmt.Fprintf(&b, " error=%q", e.Error)
	}
	return b.String()
}
