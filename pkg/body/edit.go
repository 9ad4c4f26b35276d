package body

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Edit replaces the bytes of a body from Start up to End by Text. An Edit without Text changes nothing.
type Edit struct {
	Start, End int
	Text       string
}

// Apply returns a copy of b with these edits, which must not overlap. Every other byte stays the same.
func Apply(b []byte, edits ...Edit) []byte {
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
	length := len(b)
	for _, e := range edits {
		length += len(e.Text)
	}
	out, from := make([]byte, 0, length), 0
	for _, e := range edits {
		if e.Text == "" {
			continue
		}
		out = append(append(out, b[from:e.Start]...), e.Text...)
		from = e.End
	}
	return append(out, b[from:]...)
}

// Rename returns the edit that replaces the model by name; without a model the edit has no Text.
func (f *Fields) Rename(name string) Edit {
	if f.ModelEnd == 0 {
		return Edit{}
	}
	quoted := []byte(name)
	if !f.ModelRaw {
		quoted, _ = json.Marshal(name) // marshalling a string cannot fail
	}
	return Edit{Start: f.ModelStart, End: f.ModelEnd, Text: string(quoted)}
}
