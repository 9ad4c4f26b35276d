package body

import "encoding/json"

// Rewrite returns a copy of b with the model's value replaced by name; every other byte stays. f is what Scan found
// in b. Without a string to replace it returns b itself.
func Rewrite(b []byte, f *Fields, name string) []byte {
	if f.ModelEnd == 0 {
		return b
	}
	quoted := []byte(name)
	if !f.ModelRaw {
		quoted, _ = json.Marshal(name) // a string can always be marshalled
	}
	out := make([]byte, 0, len(b)-(f.ModelEnd-f.ModelStart)+len(quoted))
	out = append(out, b[:f.ModelStart]...)
	out = append(out, quoted...)
	return append(out, b[f.ModelEnd:]...)
}
