package extproc

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A filter with response headers and trailers on SKIP ends each stream after the answer to its request.
func TestUnobservedCompletionIsReported(t *testing.T) {
	type ends struct {
		live             time.Duration
		response, closed bool // Envoy closes the stream before it cancels it
	}
	run := func(t *testing.T, all ...ends) int {
		n := 0
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			for _, e := range all {
				c := b.open("NONE/NONE")
				c.say(chat())
				c.heard()
				if e.response {
					c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
					c.heard()
				}
				time.Sleep(e.live)
				if !e.closed {
					c.cancel()
				}
				c.end()
			}
			n = b.logged.has("response_trailer_mode")
		})
		return n
	}
	const soon = time.Millisecond
	for name, test := range map[string]struct {
		all  []ends
		want int
	}{
		"with the request":                           {slices.Repeat([]ends{{live: soon}}, 100), 1},
		"with the response headers":                  {slices.Repeat([]ends{{live: soon, response: true}}, 100), 1},
		"with the answer, late":                      {slices.Repeat([]ends{{live: time.Second, response: true}}, 100), 0},
		"while nothing was answered, late":           {slices.Repeat([]ends{{live: time.Second}}, 100), 0},
		"with clients that leave at once":            {slices.Repeat([]ends{{live: soon, response: true, closed: true}}, 100), 0},
		"with clients that leave before the answer":  {slices.Repeat([]ends{{live: soon, closed: true}}, 100), 0},
		"with whole answers after one that lived on": {append([]ends{{live: soon, response: true, closed: true}}, slices.Repeat([]ends{{live: soon, response: true}}, 100)...), 0},
		"with the response headers since an hour": {
			append([]ends{{live: soon, response: true, closed: true}, {live: time.Hour}}, slices.Repeat([]ends{{live: soon, response: true}}, 100)...), 1,
		},
	} {
		if n := run(t, test.all...); n != test.want {
			t.Errorf("%d warnings for streams that end %s, want %d", n, name, test.want)
		}
	}
}

// A warning is about one Envoy. Other Envoys, whose streams live on, do not silence it before, between or after, and
// each wrong Envoy has its own. An Envoy has many connections, so its port does not matter.
func TestUnobservedCompletionIsReportedOfEachEnvoy(t *testing.T) {
	const right, wrong, other = "10.0.0.1", "10.0.0.2", "::ffff:10.0.0.3"
	for name, test := range map[string]struct {
		wrong []string
		want  int
	}{"none wrong": {nil, 0}, "one wrong": {[]string{wrong}, 1}, "two wrong": {[]string{wrong, other}, 2}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			for i := range 3 * unobservedRun {
				b.ends(right, 1000+i, true)
				for _, envoy := range test.wrong {
					b.ends(envoy, 2000+i%4, false)
				}
			}
			b.ends(right, 1, true)
			if n := b.logged.has("response_trailer_mode"); n != test.want {
				t.Errorf("%s: %d warnings, want %d", name, n, test.want)
			}
			for _, envoy := range test.wrong {
				if b.logged.has(fmt.Sprintf("%q=%q", "envoy", net.ParseIP(envoy))) != 1 {
					t.Errorf("%s: no warning names %s", name, envoy)
				}
			}
		})
	}
}

// However many addresses streams come from, Weir keeps only the latest few, and an Envoy in use is always among them.
func TestFewEnvoysAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.ends("10.0.0.1", 1, true)
		for i := range 4 * unobservedEnvoys {
			b.ends(net.IPv4(10, 1, byte(i/256), byte(i)).String(), 1, false)
			b.ends("10.0.0.1", 1, false) // an answer that was whole when Weir replied to its headers
		}
		if n := len(b.server.unobserved.envoys); n != unobservedEnvoys {
			t.Errorf("%d Envoys are watched", n)
		}
		if o := b.server.unobserved.envoys[netip.MustParseAddr("10.0.0.1")]; o == nil || o.lived.IsZero() {
			t.Error("the Envoy that is in use was forgotten")
		}
	})
}

// ends plays a stream with a streamed answer, from the Envoy at this address. Envoy closes it at the answer's end, or
// cancels it after Weir's reply to the response headers.
func (b *testbench) ends(envoy string, port int, closed bool) {
	b.envoy = &net.TCPAddr{IP: net.ParseIP(envoy), Port: port}
	c := b.open("NONE/NONE")
	c.say(chat())
	c.heard()
	c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
	c.heard()
	time.Sleep(time.Millisecond)
	if !closed {
		c.cancel()
	}
	c.end()
}
