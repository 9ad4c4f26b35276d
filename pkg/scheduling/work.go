package scheduling

import "slices"

// Work is the purpose of an engine, by its role.
type Work uint8

const (
	// WorkAll means that the engine reads prompts and answers them.
	WorkAll Work = iota
	// WorkDecode means that the engine answers, and a prefill engine reads long prompts for it.
	WorkDecode
	// WorkPrefill means that the engine only reads prompts for others: a prefill engine.
	WorkPrefill
	// WorkNone means that the engine has no work for Weir's requests, as when it only encodes media.
	WorkNone
)

// works are llm-d's roles by their work for Weir, including an older name. A role with encode in it also encodes media,
// when decode engines ask it to.
var works = [][]string{
	WorkAll:     {"", "both", "prefill-decode", "encode-prefill-decode", "all"},
	WorkDecode:  {"decode", "encode-decode"},
	WorkPrefill: {"prefill", "encode-prefill"},
	WorkNone:    {"encode"},
}

// WorkOf returns the work of an engine with a role; WorkNone and false for an unknown role. "" is no role.
func WorkOf(role string) (work Work, known bool) {
	for work, roles := range works {
		if slices.Contains(roles, role) {
			return Work(work), true
		}
	}
	return WorkNone, false
}

// String returns the work as the role of that name; "" for WorkAll.
func (w Work) String() string { return works[min(w, WorkNone)][0] }

// Serves reports whether such an engine answers requests.
func (w Work) Serves() bool { return w == WorkAll || w == WorkDecode }
