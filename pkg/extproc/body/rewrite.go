package body

import "encoding/json"

// Rewrite returns a copy of b in which the model is replaced by name. Every other byte stays the same. f is what Scan or
// ScanForm found in b. If it found no model, Rewrite returns b itself.
func Rewrite(b []byte, f *Fields, name string) []byte {
	if f.ModelEnd == 0 {
		return b
	}
	quoted := []byte(name)
	if !f.ModelRaw {
		quoted, _ = json.Marshal(name) // marshalling a string cannot fail
	}
	out := make([]byte, 0, len(b)-(f.ModelEnd-f.ModelStart)+len(quoted))
	out = append(out, b[:f.ModelStart]...)
	out = append(out, quoted...)
	return append(out, b[f.ModelEnd:]...)
}
