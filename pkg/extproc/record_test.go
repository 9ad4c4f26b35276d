package extproc

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// fakeRecords keeps the records it gets.
type fakeRecords struct {
	mu  sync.Mutex
	all []*decision.Record
}

func (r *fakeRecords) Put(d *decision.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

// tenantsMayAsk allows these tenants to ask for records.
func tenantsMayAsk(tenants ...string) func(*Config) {
	return func(c *Config) {
		c.FlowKey, c.Explain = []string{"header:x-tenant", "model"}, tenants
	}
}

// knowing gives the fakes the data of the machine and the board on the decision.
func (c *conversation) knowing() {
	c.controller.facts = &dispatch.Facts{Number: 9, Flow: "team-a", Tier: "critical", Cost: 3, Weight: 2}
	c.picker.explained = &scheduling.Decision{Chosen: "10.0.0.1:8000", Candidates: []scheduling.Candidate{{Address: "10.0.0.1:8000"}}}
}

// A permitted client that asks gets the record of the decision with its response. The sink gets it too. The header does
// not reach the model server.
func TestExplainedToWhoMayAsk(t *testing.T) {
	inBubble(t, "NONE/NONE", tenantsMayAsk("team-a"), func(c *conversation) {
		c.knowing()
		c.say(chat("x-tenant", "team-a", "x-request-id", "the one", request.ExplainHeader, "1"))
		if got := c.heard(); got != "headers "+dest+" -x-weir-explain "+meta {
			t.Error(got)
		}
		if r := c.controller.requests[0]; !r.Explain || c.picker.views != 1 {
			t.Errorf("explain %v, %d views", r.Explain, c.picker.views)
		}
		c.say(responseHeaders("200", false))
		_, text, told := strings.Cut(c.heard(), "+"+decisionHeader+"=")
		var r decision.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil || !told {
			t.Fatalf("got %q: %v", text, err)
		}
		if r.ID != "the one" || r.Number != 9 || r.Weight != 2 || r.Endpoint != "10.0.0.1:8000" || r.Outcome != decision.InFlight || len(r.Placement.Candidates) != 1 {
			t.Errorf("%s", text)
		}
		c.end()
		if all := c.records.all; len(all) != 1 || all[0].Outcome != "dispatched" || all[0].ID != "the one" {
			t.Errorf("%d records in the sink", len(all))
		}
	})
}

// Without a request and a permission, a client gets no record, and Weir makes none.
func TestOthersAreExplainedNothing(t *testing.T) {
	for name, test := range map[string]struct {
		tenants []string
		headers []string
	}{
		"nobody may":        {nil, []string{"x-tenant", "team-a", request.ExplainHeader, "1"}},
		"another tenant":    {[]string{"team-a"}, []string{"x-tenant", "team-b", request.ExplainHeader, "1"}},
		"no tenant":         {[]string{"team-a"}, []string{request.ExplainHeader, "1"}},
		"it does not ask":   {[]string{"team-a"}, []string{"x-tenant", "team-a"}},
		"it says no":        {[]string{"team-a"}, []string{"x-tenant", "team-a", request.ExplainHeader, "0"}},
		"only anonymous":    {[]string{request.Anonymous}, []string{"x-tenant", "team-a", request.ExplainHeader, "1"}},
		"claims the others": {[]string{request.Anonymous}, []string{"x-tenant", request.Anonymous, request.ExplainHeader, "1"}},
	} {
		inBubble(t, "NONE/NONE", tenantsMayAsk(test.tenants...), func(c *conversation) {
			c.knowing()
			c.say(chat(append(test.headers, "x-gateway-model-name", "m")...))
			c.heard()
			if r := c.controller.requests[0]; r.Explain || c.picker.views > 0 {
				t.Errorf("%s: it is watched", name)
			}
			c.say(responseHeaders("200", false))
			if got := c.heard(); strings.Contains(got, decisionHeader) {
				t.Errorf("%s: %s", name, got)
			}
			c.end()
			if len(c.records.all) > 0 {
				t.Errorf("%s: there is a record", name)
			}
		})
	}
}

// "*" is every sender, and anonymous is every sender without an identity. With hashed keys the configuration may have
// the key or its hash.
func TestWhoMayAsk(t *testing.T) {
	for _, test := range []struct {
		may    string
		hashed bool
		tenant string
	}{
		{"*", false, "team-a"},
		{"*", false, ""},
		{request.Anonymous, false, ""},
		{"team-a", true, "team-a"},
		{request.HashedFlowName("team-a"), true, "team-a"},
	} {
		configure := func(c *Config) {
			tenantsMayAsk(test.may)(c)
			c.HashFlowKeys = test.hashed
		}
		inBubble(t, "NONE/NONE", configure, func(c *conversation) {
			c.say(chat("x-gateway-model-name", "m", "x-tenant", test.tenant, request.ExplainHeader, "true"))
			if c.heard(); !c.controller.requests[0].Explain {
				t.Errorf("%+v: it may not", test)
			}
		})
	}
}

// A rejected client that asks also gets the record, without others' requests.
func TestRejectionsAreExplained(t *testing.T) {
	inBubble(t, "NONE/NONE", tenantsMayAsk("*"), func(c *conversation) {
		c.controller.reject = flowcontrol.ErrShed
		c.controller.facts = &dispatch.Facts{Number: 4, Limit: &dispatch.Limit{
			Name: "upper-bound", Value: 77, Holders: []dispatch.Holder{{Flow: "noisy", Held: 70}},
		}}
		c.say(chat("x-tenant", "team-a", request.ExplainHeader, "1"))
		text := c.rejection()[decisionHeader]
		if !strings.Contains(text, `"outcome":"shed"`) || !strings.Contains(text, `"upper-bound"`) || strings.Contains(text, "noisy") || strings.Contains(text, "77") {
			t.Errorf("told %s", text)
		}
		c.end()
		if r := c.records.all[0]; len(r.Limit.Holders) != 1 || r.RetryAfter != 1.5 || r.Outcome != "shed" {
			t.Errorf("%s", r.JSON())
		}
	})
	inBubble(t, "NONE/NONE", tenantsMayAsk("*"), func(c *conversation) { // before the queue
		c.picker.err = flowcontrol.ErrUnknownModel
		c.say(chat("x-tenant", "team-a", request.ExplainHeader, "1"))
		if text := c.rejection()[decisionHeader]; !strings.Contains(text, `"outcome":"unknown-model"`) {
			t.Errorf("told %s", text)
		}
		c.end()
		if r := c.records.all[0]; r.Outcome != "unknown-model" || r.Flow == "" || r.Arrived.IsZero() {
			t.Errorf("%s", r.JSON())
		}
	})
}

// A response without room for the record goes on without it.
func TestExplanationNeedsRoom(t *testing.T) {
	for _, test := range []struct {
		headers, bytes int
		told           bool
	}{{99, 10_000, true}, {100, 10_000, false}, {10, roomyHeaderBytes - mostDecision, true}, {10, roomyHeaderBytes - mostDecision + 1, false}} {
		inBubble(t, "NONE/NONE", tenantsMayAsk("*"), func(c *conversation) {
			c.say(chat(request.ExplainHeader, "1"))
			c.heard()
			c.say(responseOf(test.headers, test.bytes))
			if got := strings.Contains(c.heard(), decisionHeader); got != test.told {
				t.Errorf("%d headers, %d bytes: told %v", test.headers, test.bytes, got)
			}
		})
	}
}

// A sample has the requests that decision.Sample chooses by their IDs, and its share of the requests without an ID.
func TestSampledRequests(t *testing.T) {
	const share = 250_000
	for i := range 20 {
		id := fmt.Sprint("request ", i)
		inBubble(t, "NONE/NONE", func(c *Config) { c.Sample = share }, func(c *conversation) {
			c.knowing()
			c.controller.queued = time.Second
			c.say(chat("x-request-id", id))
			c.say(responseHeaders("200", false))
			if got := c.heard(); strings.Contains(got, decisionHeader) {
				t.Errorf("a client that did not ask gets: %s", got)
			}
			c.end()
			if got, want := len(c.records.all), decision.SampleOf(share).Has(id); (got == 1) != want {
				t.Errorf("%s: %d records, sampled %v", id, got, want)
			}
		})
	}
	inBubble(t, "NONE/NONE", func(c *Config) { c.Sample = decision.SampleOne }, func(c *conversation) {
		c.say(chat())
		c.end()
		if len(c.records.all) != 1 || c.records.all[0].Outcome != "client-cancelled" && c.records.all[0].Outcome != "dispatched" {
			t.Errorf("%d records", len(c.records.all))
		}
	})
}
