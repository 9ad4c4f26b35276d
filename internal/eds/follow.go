package eds

import (
	"bytes"
	"context"
	"net/netip"
	"time"
)

// retryWait is the time after which a file that could not be written is written again.
const retryWait = time.Second

// Follower writes the file of a cluster.
type Follower struct {
	Path    string        // of the file
	Cluster string        // whose endpoints they are
	Grace   time.Duration // for which a removed endpoint drains

	// Wrote is called after each attempt to write, with the endpoints of the text.
	Wrote func(hosts []Host, err error)
}

// Run writes the file for each list that comes, and again when an endpoint has drained, unless its text is the same as
// before. It returns when ctx is done; endpoints that drain then stay in the file.
func (f Follower) Run(ctx context.Context, lists <-chan []netip.AddrPort) {
	kept := Kept{Grace: f.Grace}
	var written []byte
	due := time.NewTimer(0)
	due.Stop()
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case listed := <-lists:
			kept.Set(listed, time.Now())
		case <-due.C:
		}
		now := time.Now()
		hosts, next := kept.Hosts(now)
		if text := Encode(f.Cluster, hosts); !bytes.Equal(text, written) {
			err := Write(f.Path, text)
			if err == nil {
				written = text
			} else {
				next = now.Add(retryWait)
			}
			f.Wrote(hosts, err)
		}
		due.Stop()
		if !next.IsZero() {
			due.Reset(next.Sub(now))
		}
	}
}
