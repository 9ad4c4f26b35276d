package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// schema is the version of Report's JSON form.
const schema = 1

// JSON writes the report as one JSON object.
func (r Report) JSON(to io.Writer) error {
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Schema int `json:"schema"`
		Report
	}{schema, r})
}

// Text writes the report for people. source is the text's name, written before the findings' lines.
func (r Report) Text(to io.Writer, source string) error {
	var b strings.Builder
	for _, f := range r.Findings {
		f.Where, f.Found, f.Change = oneLine(f.Where), oneLine(f.Found), oneLine(f.Change)
		fmt.Fprintf(&b, "%s: %s\n", f.ID, f.Title)
		if f.Line > 0 {
			fmt.Fprintf(&b, "  at      %s:%d\n          %s\n", source, f.Line, f.Where)
		} else {
			fmt.Fprintf(&b, "  at      %s\n", f.Where)
		}
		fmt.Fprintf(&b, "  found   %s\n  change  %s\n  why     %s\n\n", f.Found, f.Change, f.Why)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "not checked: %s\n", oneLine(n))
	}
	fmt.Fprintf(&b, "findings: %d\n", len(r.Findings))
	_, err := io.WriteString(to, b.String())
	return err
}

// oneLine returns a text without control characters: names in a configuration may contain them.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// Add appends another report.
func (r *Report) Add(other Report) {
	r.Findings = append(r.Findings, other.Findings...)
	r.Notes = append(r.Notes, other.Notes...)
}
