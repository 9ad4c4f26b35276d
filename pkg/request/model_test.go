package request

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Clients can make up names of models. With "shared" all unknown models are one flow and one label. A model that the
// configuration or an endpoint lists is its own flow. The target, by which it is placed, is the same either way.
func TestUnknownModelsShareAFlow(t *testing.T) {
	for _, policy := range []UnknownModelsPolicy{UnknownModelsOwn, UnknownModelsShared} {
		for model, known := range map[string]bool{"listed": true, "configured": true, "zz0": false, "configured-v1": false} {
			s := sent{cfg: DefaultConfig(), headers: chat(), mode: Buffered, body: `{"model":"` + model + `"}`, lists: listed{"listed"}}
			s.cfg.UnknownModels = policy
			s.cfg.Models = []Model{{Name: "configured", Targets: []Target{{Name: "configured-v1", Weight: 1}}}}
			q := s.must(t)
			target := model
			if model == "configured" {
				target = "configured-v1"
			}
			if q.Model != model || q.Target != target {
				t.Errorf("%s, %s: target %q", policy, model, q.Target)
			}
			flow, label := model+"/"+target, model
			if policy == UnknownModelsShared && !known {
				flow, label, target = "unknown", "unknown", "unknown"
			}
			gotLabel, gotTarget := q.Labels()
			if q.Flow != flow || gotLabel != label || gotTarget != target || q.Size.Model != target {
				t.Errorf("%s, %s: flow %q, labels %q, %q, estimated as %q", policy, model, q.Flow, gotLabel, gotTarget, q.Size.Model)
			}
		}
	}
}

// A tenant is its own flow with any model. If models name no flows, unknown models do not either.
func TestUnknownModelsOfTenants(t *testing.T) {
	for _, test := range []struct {
		key     []string
		headers []string
		flow    string
	}{
		{[]string{"header:x-tenant", "model"}, headers("x-tenant", "a"), "a"},
		{[]string{"header:x-tenant", "model"}, nil, "unknown"},
		{[]string{"header:x-tenant"}, nil, "anonymous"},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(append(test.headers, "x-gateway-model-name", "zz1")...)}
		s.cfg.UnknownModels, s.cfg.FlowKey = UnknownModelsShared, test.key
		q := s.must(t)
		if label, _ := q.Labels(); q.Flow != test.flow || label != "unknown" {
			t.Errorf("%q: flow %q, label %q", test.key, q.Flow, label)
		}
	}
}

// A target for all other models applies to models that are not configured, and makes none of them known.
func TestOtherModelsHaveATarget(t *testing.T) {
	for model, want := range map[string]string{"configured": "configured/configured", "zz0": "unknown", "": "anonymous"} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-gateway-model-name", model)}
		toOther(&s.cfg)
		s.cfg.UnknownModels, s.cfg.Models = UnknownModelsShared, []Model{{Name: "configured"}}
		target := model
		if model == "zz0" {
			target = "other"
		}
		if q := s.must(t); q.Flow != want || q.Target != target {
			t.Errorf("%q: flow %q, target %q", model, q.Flow, q.Target)
		}
	}
}

// Targets are drawn with a probability of their weight over the sum of weights. A model without targets is its own.
func TestTargetsAreDrawnByWeight(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Models = []Model{
		{Name: "chat", Targets: []Target{{Name: "v1", Weight: 9}, {Name: "v2", Weight: 1}}},
		{Name: "even", Targets: []Target{{Name: "a", Weight: 5}, {Name: "b", Weight: 5}}},
	}
	r, draw := NewRules(&cfg), rand.New(rand.NewPCG(1, 2))
	drawn := map[string]int{}
	const n = 10_000
	for range n {
		drawn[r.target("chat", draw)]++
		drawn[r.target("even", draw)]++
	}
	if math.Abs(float64(drawn["v1"])/n-0.9) > 0.01 || math.Abs(float64(drawn["a"])/n-0.5) > 0.02 {
		t.Errorf("%v", drawn)
	}
	if got := r.target("other", draw); got != "other" {
		t.Errorf("a model that is not listed became %q", got)
	}
}

// The configuration names its models and their targets.
func TestNames(t *testing.T) {
	cfg := DefaultConfig()
	toOther(&cfg)
	cfg.Models = []Model{{Name: "chat", Targets: []Target{{Name: "v1", Weight: 9}}}}
	r := NewRules(&cfg)
	for model, want := range map[string]bool{"chat": true, "v1": true, "other": true, "another": false, "": false} {
		if r.Names(model) != want {
			t.Errorf("%q: %v", model, !want)
		}
	}
}

// The name of a model has at most 1,024 bytes, from any source.
func TestLongModels(t *testing.T) {
	long := strings.Repeat("m", MaxModelBytes+1)
	for name, s := range map[string]sent{
		"in a header":                   {headers: chat("x-gateway-model-name", long)},
		"by Envoy":                      {headers: chat(), envoyRead: &EnvoyRead{Model: long}},
		"in the body":                   {headers: chat(), mode: Buffered, body: `{"model":"` + long + `"}`},
		"in the body beside a header's": {headers: chat("x-gateway-model-name", "m"), mode: FullDuplex, body: `{"model":"` + long + `"}`},
	} {
		q, err := s.read()
		if e := new(Error); !errors.As(err, &e) || e.Field != "model" || e.Message != `The field "model" is longer than 1024 bytes.` {
			t.Errorf("%s: %v", name, err)
		}
		if len(q.Model) > 1 {
			t.Errorf("%s: it is kept", name)
		}
		s.headers, s.body = headers(strings.ReplaceAll(strings.Join(s.headers, "\n"), long, long[1:])), strings.ReplaceAll(s.body, long, long[1:])
		s.headers = strings.Split(s.headers[0], "\n")
		if s.envoyRead != nil {
			s.envoyRead = &EnvoyRead{Model: long[1:]}
		}
		if _, err := s.read(); err != nil {
			t.Errorf("%s, a byte less: %v", name, err)
		}
	}
}
