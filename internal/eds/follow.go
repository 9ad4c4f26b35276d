package eds

import (
	"bytes"
	"context"
	"net/netip"
	"time"
)

// retryWait is the time after a failed write until the next attempt.
const retryWait = time.Second

// Follower writes the file of a cluster.
type Follower struct {
	Path    string        // of the file
	Cluster string        // whose endpoints they are
	Grace   time.Duration // for which a removed endpoint drains

	// Wrote is called after each write with the written endpoints, and after a failed write unless the previous one
	// failed for the same reason.
	Wrote func(hosts []Host, err error)
}

// Run writes the file for the first list, for each later list, and when an endpoint has drained, unless its text has
// not changed; after a signal of again it always writes the file. It returns an error if the first write fails, and
// otherwise nil when ctx is done; draining endpoints then stay in the file.
func (f Follower) Run(
	ctx context.Context, first []netip.AddrPort, lists <-chan []netip.AddrPort, again <-chan struct{},
) error {
	w := following{Follower: f, kept: Kept{Grace: f.Grace}}
	w.kept.Set(first, time.Now())
	due := time.NewTimer(0)
	due.Stop()
	defer due.Stop()
	for {
		next := w.write()
		if w.written == nil {
			return w.problem
		}
		due.Stop()
		if !next.IsZero() {
			due.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case listed := <-lists:
			w.kept.Set(listed, time.Now())
		case <-again:
			w.stale = true
		case <-due.C:
		}
	}
}

// following is a running Follower.
type following struct {
	Follower
	kept    Kept
	written []byte // the text of the last successful write; nil before it
	stale   bool   // the file may have another text
	problem error  // of the last write, if that failed
}

// write writes the file if it is due, and returns the time of the next change; zero if there is none.
func (w *following) write() (next time.Time) {
	now := time.Now()
	hosts, next := w.kept.Hosts(now)
	text := Encode(w.Cluster, hosts)
	if bytes.Equal(text, w.written) && !w.stale {
		return next
	}
	before := w.problem
	if w.problem = Write(w.Path, text); w.problem != nil {
		if w.written != nil && (before == nil || before.Error() != w.problem.Error()) {
			w.Wrote(hosts, w.problem)
		}
		return now.Add(retryWait)
	}
	w.written, w.stale = text, false
	w.Wrote(hosts, nil)
	return next
}
