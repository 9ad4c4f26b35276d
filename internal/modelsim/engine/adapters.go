package engine

import (
	"slices"
	"time"
)

// adapters are the loaded LoRA adapters, the least recently used first. As in vLLM, a sequence waits while other
// adapters in the batch take all the room, and sequences behind it may join first.
type adapters struct {
	room   int // 0: adapters need no room
	loaded []string
	loads  uint64
	fresh  int // loads for the step being composed
}

// admits reports whether a sequence may join the running ones.
func (a *adapters) admits(s *sequence, running []*sequence) bool {
	if a.room == 0 || s.Adapter == "" {
		return true
	}
	var beside []string
	for _, r := range running {
		if r.Adapter == s.Adapter {
			return true
		}
		if r.Adapter != "" && !slices.Contains(beside, r.Adapter) {
			beside = append(beside, r.Adapter)
		}
	}
	return len(beside) < a.room
}

// use notes that a sequence joins the running ones. Its adapter is loaded if it is not there.
func (a *adapters) use(s *sequence, running []*sequence) {
	if a.room == 0 || s.Adapter == "" {
		return
	}
	if i := slices.Index(a.loaded, s.Adapter); i >= 0 {
		a.loaded = append(slices.Delete(a.loaded, i, i+1), s.Adapter)
		return
	}
	if len(a.loaded) == a.room {
		i := slices.IndexFunc(a.loaded, func(name string) bool {
			return !slices.ContainsFunc(running, func(r *sequence) bool { return r.Adapter == name })
		})
		a.loaded = slices.Delete(a.loaded, i, i+1)
	}
	a.loaded = append(a.loaded, s.Adapter)
	a.loads++
	a.fresh++
}

// takes returns the duration of the loads for the step.
func (a *adapters) takes(each time.Duration) time.Duration {
	n := a.fresh
	a.fresh = 0
	return time.Duration(n) * each
}
