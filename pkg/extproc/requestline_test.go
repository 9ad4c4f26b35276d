package extproc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// theLine returns the only line of a request, without its total time.
func (c *conversation) theLine() string {
	c.t.Helper()
	c.end()
	c.logged.mu.Lock()
	defer c.logged.mu.Unlock()
	found := ""
	for _, line := range c.logged.lines {
		if rest, is := strings.CutPrefix(line, `"level"=1 "msg"="request" `); is {
			if found != "" {
				c.t.Errorf("two lines for one request:\n%s\n%s", found, rest)
			}
			before, after, _ := strings.Cut(rest, ` "after"=`)
			_, further, _ := strings.Cut(after, " ")
			found = strings.TrimSpace(before + " " + further)
		}
	}
	return found
}

func tenants(cfg *Config) { cfg.FlowKey = []string{"header:x-tenant", "model"} }

// ofAlice has the headers of a request with every identity and name.
func ofAlice(pairs ...string) []string {
	return append([]string{"x-gateway-model-name", "m", "x-tenant", "alice", "x-request-id", "r-1"}, pairs...)
}

const aliceSaid = `"id"="r-1" "flow"="alice" "tier"="critical" "model"="m" "targetModel"="m" `

// At --v=1 each request has one line at its end, whatever the end: its tenant, its wait, its destination, and the
// answer to its client.
func TestOneLineForEachRequest(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *conversation)
		talk   func(c *conversation)
		want   string
	}{
		"bypassed and served": {
			nil,
			func(c *conversation) { c.say(chat(ofAlice()...)); c.say(responseHeaders("200", false)) },
			aliceSaid + `"wait"="0s" "bypass"=true "endpoint"="10.0.0.1:8000" "outcome"="dispatched" "status"=200`,
		},
		"after a wait": {
			func(c *conversation) { c.controller.queued = 1500 * time.Millisecond },
			func(c *conversation) { c.say(chat(ofAlice()...)); c.say(responseHeaders("502", false)) },
			aliceSaid + `"wait"="1.5s" "bypass"=false "endpoint"="10.0.0.1:8000" "outcome"="dispatched" "status"=502`,
		},
		"expired": {
			func(c *conversation) { c.controller.hold = true },
			func(c *conversation) {
				c.say(chat(ofAlice()...))
				time.Sleep(2 * time.Second)
				c.controller.grant <- flowcontrol.ErrExpiredTTL
			},
			aliceSaid + `"wait"="2s" "bypass"=false "endpoint"="" "outcome"="ttl-expired" "status"=503 ` +
				`"error"="flowcontrol: waited longer than its TTL" "retryAfter"="1.5s"`,
		},
		"gone while it waited": {
			func(c *conversation) { c.controller.hold = true },
			func(c *conversation) {
				c.say(chat(ofAlice()...))
				time.Sleep(time.Second)
				c.cancel()
				synctest.Wait()
			},
			aliceSaid + `"wait"="1s" "bypass"=false "endpoint"="" "outcome"="client-cancelled" "status"=499 ` +
				`"error"="context canceled" "retryAfter"="1.5s"`,
		},
		"gone while its body came": {
			nil,
			func(c *conversation) {
				c.say(chat("x-tenant", "alice", "x-request-id", "r-1"))
				synctest.Wait()
				c.cancel()
			},
			`"id"="r-1" "flow"="alice" "tier"="" "model"="" "targetModel"="" "wait"="0s" "bypass"=false "endpoint"="" ` +
				`"outcome"="client-cancelled" "status"=499 "error"="context canceled"`,
		},
		"malformed": {
			nil,
			func(c *conversation) {
				c.say(chat("x-request-id", "r-1"))
				c.say(requestBodyOf(`{"model":7}`, true))
			},
			`"id"="r-1" "flow"="" "tier"="" "model"="" "targetModel"="" "wait"="0s" "bypass"=false "endpoint"="" ` +
				`"outcome"="bad-request" "status"=400 "error"="The field \"model\" is not a string."`,
		},
		"preempted": {
			func(c *conversation) { c.controller.preempt = make(chan struct{}) },
			func(c *conversation) { c.say(chat(ofAlice()...)); synctest.Wait(); close(c.controller.preempt) },
			aliceSaid + `"wait"="0s" "bypass"=true "endpoint"="10.0.0.1:8000" "outcome"="preempted" "status"=503 ` +
				`"error"="flowcontrol: preempted in favour of a higher tier" "headersHeld"=false`,
		},
		"a client that wants to forge": {
			nil,
			func(c *conversation) {
				c.say(chat("x-gateway-model-name", "m\"\n", "x-tenant", "a\"\r\n\"outcome\"=\"forged", "x-request-id", strings.Repeat("\n", 300)))
			},
			`"id"="` + strings.Repeat(`\n`, 256) + `" "flow"="a\"\r\n\"outcome\"=\"forged" "tier"="critical" "model"="m\"\n" ` +
				`"targetModel"="m\"\n" "wait"="0s" "bypass"=true "endpoint"="10.0.0.1:8000" "outcome"="dispatched" "status"=0`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "BUFFERED/NONE", tenants, func(c *conversation) {
				if test.change != nil {
					test.change(c)
				}
				test.talk(c)
				synctest.Wait()
				line := c.theLine()
				if i := strings.Index(line, ` "retryAfter"=`); i >= 0 && strings.Contains(line, "preempted") {
					_, held, _ := strings.Cut(line[i+1:], " ")
					line = line[:i] + " " + held // the time is spread at random
				}
				if line != test.want {
					t.Errorf("the line is\n%s\nwant\n%s", line, test.want)
				}
			})
		})
	}
}

// At --v=0 there is none.
func TestNoLineWithoutVerbosity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, tenants)
		b.server.log = b.server.log.V(1) // so that the bench's log does not show V(1) of it
		c := b.open("BUFFERED/NONE")
		c.say(chat(ofAlice()...))
		if line := c.theLine(); line != "" {
			t.Error(line)
		}
	})
}

// If configured, dynamic metadata has the decision for Envoy's access log, in each deciding reply.
func TestDecisionInMetadata(t *testing.T) {
	with := func(cfg *Config) { tenants(cfg); cfg.Responses.Metadata = true }
	said := func(c *conversation) []string {
		var all []string
		for _, m := range c.stream.take() {
			weir := m.GetDynamicMetadata().GetFields()["weir"].GetStructValue()
			if weir == nil {
				continue
			}
			all = append(all, fmt.Sprint(weir.AsMap()))
		}
		return all
	}
	for name, test := range map[string]struct {
		mode   string
		change func(*Config)
		hold   bool
		talk   func(c *conversation)
		want   []string
	}{
		"not asked for": {"BUFFERED/NONE", tenants, false, func(c *conversation) { c.say(chat(ofAlice()...)) }, nil},
		"dispatched": {
			"BUFFERED/NONE", with, false,
			func(c *conversation) { c.say(chat(ofAlice()...)) },
			[]string{"map[bypass:true endpoint:10.0.0.1:8000 flow:alice model:m outcome:dispatched tier:critical wait_ms:0]"},
		},
		"dispatched with its body": {
			"BUFFERED/NONE", with, false,
			func(c *conversation) {
				c.say(chat())
				c.say(requestBodyOf(`{"model":"m"}`, true))
			},
			[]string{"map[bypass:true endpoint:10.0.0.1:8000 flow:m/m model:m outcome:dispatched tier:critical wait_ms:0]"},
		},
		"dispatched with another model": {
			"BUFFERED/NONE", func(cfg *Config) {
				with(cfg)
				cfg.Models = []request.Model{{Name: "m", Targets: []request.Target{{Name: "v1", Weight: 1}}}}
			}, false,
			func(c *conversation) {
				c.say(chat())
				c.say(requestBodyOf(`{"model":"m"}`, true))
			},
			[]string{"map[bypass:true endpoint:10.0.0.1:8000 flow:m/v1 model:m outcome:dispatched tier:critical wait_ms:0]"},
		},
		"full duplex": {
			"FULL_DUPLEX/FULL_DUPLEX", with, false,
			func(c *conversation) {
				c.say(chat(ofAlice()...))
				c.say(requestBodyOf(`{"model":"m"}`, true))
			},
			[]string{"map[bypass:true endpoint:10.0.0.1:8000 flow:alice model:m outcome:dispatched tier:critical wait_ms:0]"},
		},
		"expired": {
			"BUFFERED/NONE", with, true,
			func(c *conversation) {
				c.say(chat(ofAlice()...))
				time.Sleep(1500 * time.Microsecond)
				c.controller.grant <- flowcontrol.ErrExpiredTTL
			},
			[]string{"map[bypass:false flow:alice model:m outcome:ttl-expired tier:critical wait_ms:1.5]"},
		},
		"no text at all": {
			"BUFFERED/NONE", with, false,
			func(c *conversation) { c.say(chat("x-gateway-model-name", "\xff\"\n", "x-tenant", "alice")) },
			[]string{"map[bypass:true endpoint:10.0.0.1:8000 flow:alice model:\uFFFD\"\n outcome:dispatched tier:critical wait_ms:0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.mode, test.change, func(c *conversation) {
				c.controller.hold = test.hold
				test.talk(c)
				synctest.Wait()
				if got := said(c); fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("said %q, want %q", got, test.want)
				}
			})
		})
	}
}

// Features that are off cost a request nothing: its reply is the shared one, and it has no line.
func TestNothingIsSaidForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := newConnection(&newBench(t, nil).server.shared, &fakeStream{ctx: t.Context()}, time.Now())
		st := newMainStream(wire, chat())
		k := replyKey{destination: "10.0.0.1:8000"}
		if st.cfg.replies.reply(k, st.ownPart()) != st.cfg.replies.shared(k) {
			t.Error("the reply is a copy")
		}
	})
}

// A request refused before its offer counts for its flow, if that is known.
func TestRefusalsNameTheirFlow(t *testing.T) {
	for name, test := range map[string]struct {
		header []string
		want   string
	}{
		"a tenant":              {[]string{"x-tenant", "alice"}, "alice"},
		"a model that is known": {[]string{"x-gateway-model-name", "m"}, "m/m"},
		"neither":               {nil, ""},
	} {
		inBubble(t, "BUFFERED/NONE", func(cfg *Config) { tenants(cfg); cfg.RequestBody = request.BodyAlways }, func(c *conversation) {
			c.say(chat(test.header...))
			c.say(requestBodyOf(`{`, true))
			c.settled(1)
			if len(c.controller.refusedFlows) != 1 || c.controller.refusedFlows[0] != test.want {
				t.Errorf("%s: refused for %q, want %q", name, c.controller.refusedFlows, test.want)
			}
		})
	}
}
