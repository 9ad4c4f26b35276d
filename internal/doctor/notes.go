package doctor

import "fmt"

// Note is a part that was not checked, and the reason.
type Note struct {
	At   Path   `json:"-"`
	Text string `json:"text"`
}

// notes gathers the unreadable parts: each unknown type once, with its first place.
type notes struct {
	list  []Note
	types map[string]bool
}

func (n *notes) add(at Path, format string, args ...any) {
	n.list = append(n.list, Note{at, fmt.Sprintf(format, args...)})
}

// unknown notes an unknown type.
func (n *notes) unknown(at Path, name string) {
	if n.types[name] {
		return
	}
	if n.types == nil {
		n.types = map[string]bool{}
	}
	n.types[name] = true
	n.add(at, "unknown type, not checked: %s", name)
}
