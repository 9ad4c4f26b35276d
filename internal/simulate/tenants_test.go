package simulate

import (
	"reflect"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// ofFlows returns the figures of each flow.
func ofFlows(r *Report) map[string]Figures {
	figures := map[string]Figures{}
	for _, f := range r.Flows {
		figures[f.Flow] = f.Figures
	}
	return figures
}

// A tenant has its configured quota, whatever the names of its flows, and the excess requests are rejected for it.
// Other tenants have none. 200 tokens a request and 1,000 in 10 s are five of ten requests.
func TestQuotasOfAWorkload(t *testing.T) {
	const each = "rate: 1, arrivals: even, prompt: 100, output: 100, maxOutput: 100 }\n- { "
	r := loopReport(t, "flow: ada, "+each+"flow: night, tenant: bob, "+each+"flow: day, tenant: bob, "+each+"flow: eve, rate: 1, prompt: 100, output: 100",
		"profile: recommended\ntenantPolicies:\n"+
			"  ada: { quota: { tokens: 1000, window: 10s } }\n  bob: { quota: { tokens: 2000, window: 10s } }\n")
	figures := ofFlows(r)
	for _, flow := range []string{"ada", "night", "day"} {
		if f := figures[flow]; f.Answered < 29 || f.Answered > 32 || f.Answered+f.Rejected["quota-exceeded"] != f.Requests {
			t.Errorf("%s: %d of %d answered, rejected %v", flow, f.Answered, f.Requests, f.Rejected)
		}
	}
	if f := figures["eve"]; f.Answered != f.Requests {
		t.Errorf("eve: %d of %d answered, rejected %v", f.Answered, f.Requests, f.Rejected)
	}
}

// Answers shorter than their estimates free the rest of a quota: 300 of 1,100 estimated tokens.
func TestUseOfAWorkloadIsTruedUp(t *testing.T) {
	r := loopReport(t, "flow: ada, rate: 1, arrivals: even, prompt: 100, output: 100, maxOutput: 1000",
		"profile: recommended\ntokens: { output: { floor: 1000 } }\ntenantPolicies: { ada: { quota: { tokens: 1400, window: 10s } } }\n")
	if f := r.All; f.Answered < 12 {
		t.Errorf("%d of %d answered, as if nothing were freed", f.Answered, f.Requests)
	}
}

// Flows with a constant backlog are served by the weights of their roles, and the class of a tenant's policy is its
// tier.
func TestRolesOfAWorkload(t *testing.T) {
	const each = "inFlight: 20, prompt: 50, output: 10, maxOutput: 10 }\n- { "
	const clients = "flow: ann, role: faculty, " + each + "flow: sue, role: student, " + each + "flow: gus, role: guest, " + each + "flow: dean, inFlight: 20, prompt: 50, output: 10, maxOutput: 10"
	const slots = "requestQueueController: { slotsPerBackend: 4 }\nflows: { defaultRole: student }\n"
	figures := ofFlows(loopReport(t, clients, "profile: mindrouter-fairshare\n"+slots+"tenantPolicies: { dean: { role: admin } }\n"))
	for flow, weight := range map[string]float64{"ann": 3, "sue": 1, "gus": 1, "dean": 10} {
		own, sues := float64(figures[flow].Answered-20), float64(figures["sue"].Answered-20) // in the end 20 of each are left
		if share := own / sues; share < 0.9*weight || share > 1.1*weight {
			t.Errorf("%s: %v answered, sue %v, want %v times as many", flow, own, sues, weight)
		}
	}
	figures = ofFlows(loopReport(t, clients, "profile: recommended\n"+slots+"roles: { student: {}, faculty: { class: critical } }\n"))
	if ann, others := figures["ann"].Answered, figures["sue"].Answered+figures["gus"].Answered; ann < 9*others {
		t.Errorf("of the tier above %d are answered, of the others %d", ann, others)
	}
}

// A request has the same path as from a stream.
func TestPathsOfAWorkload(t *testing.T) {
	d, err := config.Load(config.Source{Text: []byte("profile: mindrouter-fairshare\ntenantPolicies: { a: { quota: { tokens: 1, window: 1h } } }\n")})
	if err != nil {
		t.Fatal(err)
	}
	streams := d.ExtprocConfig()
	for _, c := range []struct {
		levels  int
		request Request
		tenant  string
		path    *fairqueue.Path
	}{
		{1, Request{Flow: "a"}, "a", nil},
		{1, Request{Flow: "a", Tenant: "b", User: "u"}, "b", nil},
		{1, Request{Flow: "a", Class: "x", Role: "staff"}, "a", &fairqueue.Path{Class: "x", Role: "staff"}},
		{1, Request{Flow: "a", Role: "nobody"}, "a", nil},
		{2, Request{Flow: "a", User: "u"}, "a", &fairqueue.Path{Under: []string{"u"}}},
	} {
		of, a := tenants{request.NewRules(&streams.Config), streams.Quotas, c.levels}, dispatch.Arrival{}
		of.identify(&c.request, &a)
		if a.Tenant != c.tenant || !reflect.DeepEqual(a.Path, c.path) {
			t.Errorf("%+v with %d levels: tenant %q, path %+v", c.request, c.levels, a.Tenant, a.Path)
		}
	}
}
