package scheduling

import "slices"

// Work is the purpose of an engine, by its role.
type Work uint8

const (
	// WorkAll means that it reads prompts and answers them.
	WorkAll Work = iota
	// WorkDecode means that it answers, and a prefill engine reads long prompts for it.
	WorkDecode
	// WorkPrefill means that it only reads prompts for others: a prefill engine.
	WorkPrefill
	// WorkNone means that it does nothing that Weir has requests for, such as to encode media.
	WorkNone
)

// works are the roles of llm-d, with the older name of one, by the work that they mean to Weir. A role with encode in it does
// that besides, for decode engines that ask it.
var works = [][]string{
	WorkAll:     {"", "both", "prefill-decode", "encode-prefill-decode", "all"},
	WorkDecode:  {"decode", "encode-decode"},
	WorkPrefill: {"prefill", "encode-prefill"},
	WorkNone:    {"encode"},
}

// WorkOf returns what an engine with a role does, WorkNone for a role that does not exist. "" is no role.
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
