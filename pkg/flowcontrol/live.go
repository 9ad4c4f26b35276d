package flowcontrol

import "github.com/weir-epp/weir/pkg/dispatch"

// live has the requests that have arrived and not ended, so that a recording can begin at any time: the machine itself knows
// a request in flight by its holdings only. A request costs it two stores and no allocation.
type live []liveRequest

type liveRequest struct {
	*waiter
	id string
}

// add adds a request that is about to arrive.
func (l *live) add(w *waiter, id string) {
	*l = append(*l, liveRequest{w, id})
	w.place = uint32(len(*l))
}

// remove removes a request that has ended; it is idempotent. The last one takes its place.
func (l *live) remove(w *waiter) {
	if w.place == 0 {
		return
	}
	all := *l
	last := len(all) - 1
	all[w.place-1] = all[last]
	all[last].waiter.place = w.place
	all[last] = liveRequest{}
	*l, w.place = all[:last], 0
}

// all yields the requests and their IDs.
func (l live) all(yield func(*dispatch.Waiter, string) bool) {
	for _, r := range l {
		if r.Stage() != dispatch.StageEnded && !yield(&r.Waiter, r.id) {
			return
		}
	}
}
