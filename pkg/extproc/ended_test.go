package extproc

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// fakeTail records its calls.
type fakeTail struct {
	wanted atomic.Bool
	told   []Ended
}

func (t *fakeTail) Wanted() bool { return t.wanted.Load() }

func (t *fakeTail) Ended(e *Ended) { t.told = append(t.told, *e) }

// The tail gets each request once, at its end, with the same content as its log line, and none while there is no
// reader.
func TestTailIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		hold bool
		talk func(c *conversation)
		want string
	}{
		"served": {
			talk: func(c *conversation) { c.say(chat(ofAlice()...)); c.say(responseHeaders("200", false)) },
			want: "r-1 alice critical m m 0s true 10.0.0.1:8000 dispatched 200 <nil> 0s",
		},
		"expired": {
			hold: true,
			talk: func(c *conversation) {
				c.say(chat(ofAlice()...))
				time.Sleep(2 * time.Second)
				c.controller.grant <- flowcontrol.ErrExpiredTTL
			},
			want: "r-1 alice critical m m 2s false  ttl-expired 503 flowcontrol: waited longer than its TTL 1.5s",
		},
	} {
		for _, wanted := range []bool{true, false} {
			inBubble(t, "NONE/NONE", tenants, func(c *conversation) {
				tail := &fakeTail{}
				tail.wanted.Store(wanted)
				c.server.tail, c.controller.hold = tail, test.hold
				test.talk(c)
				c.end()
				if !wanted {
					if len(tail.told) > 0 {
						t.Errorf("%s: reported %d times, without a reader", name, len(tail.told))
					}
					return
				}
				if len(tail.told) != 1 {
					t.Fatalf("%s: reported %d times", name, len(tail.told))
				}
				e := tail.told[0]
				if got := fmt.Sprint(e.ID, " ", e.Flow, " ", e.Tier, " ", e.Model, " ", e.TargetModel, " ", e.Wait, " ", e.Bypass, " ", e.Endpoint, " ", e.Outcome, " ",
					e.Status, " ", e.Err, " ", e.RetryAfter); got != test.want {
					t.Errorf("%s: told %s", name, got)
				}
				if test.hold && !errors.Is(e.Err, flowcontrol.ErrExpiredTTL) || e.At.IsZero() || e.After != e.Wait {
					t.Errorf("%s: %+v", name, e)
				}
			})
		}
	}
}
