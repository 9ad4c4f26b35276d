package request

import (
	"strings"
	"testing"
)

func TestDefaultConfigIsValid(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// All problems are reported at once, each with its field, its value and the valid values.
func TestValidateNamesEveryField(t *testing.T) {
	two := 2
	cfg := Config{
		FlowKey: []string{
			"header:", "metadata:x", "attribute:", "cookie:y", "models", "header:a b", "", "model", "model", "metadata:x/a//b", "attribute:a",
		},
		Models:          []Model{{}, {Name: "m", Criticality: "Vital"}, {Name: "m", Targets: []Target{{Weight: 0}, {Name: "t", Weight: 1_000_001}}}},
		OtherTargets:    []Target{{Name: "t"}},
		Objectives:      []Objective{{}, {Name: "o"}, {Name: "o"}},
		TenantPolicies:  map[string]TenantPolicy{"vip": {Class: "gentry", MaxClass: "nobility"}, "*": {}},
		PolicyClass:     PolicyClass{Headers: []string{"a b", "A b", "c"}, PriorityHeader: "é", MaxStrictPriority: -1},
		Criticality:     Criticality{Header: "a b", Metadata: "x", Default: "none", ObjectiveHeaders: []string{"", "a b", "c", "C", "e"}},
		Tiers:           []Tier{{Name: "one", MinPriority: &two}, {Name: "two"}, {Name: "three", MinPriority: &two}},
		TrustedHeaders:  TrustedHeaders{Model: "a:b", Cost: "ä", InputTokens: "c d"},
		RequestBody:     "sometimes",
		PassOn:          "drop",
		PassOnPaths:     []string{"/a?b", "c", "", "/d", "/d"},
		UnknownModels:   "some",
		Anonymous:       "nobody",
		Limits:          Limits{MaxBodyBytes: 5, BodyTimeout: longestBodyTimeout + 1},
		DeadlineHeaders: []string{"", "x-deadline"},
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	const tiers = "must be one of Critical, Standard, Sheddable, one, two, three"
	want := []string{
		`FlowKey[0]: "header:": must name the header, as in header:x-tenant`,
		`FlowKey[1]: "x": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
		`FlowKey[2]: "attribute:": must name the attribute, as in attribute:source.principal`,
		`FlowKey[3]: "cookie:y": must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME`,
		`FlowKey[4]: "models": must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME`,
		`FlowKey[5]: "a b": must be the name of a header`,
		`FlowKey[6]: "": must be given`,
		`FlowKey[8]: "model": must be unique`,
		`FlowKey[9]: "x/a//b": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
		`Tiers[2].MinPriority: 2: must be below that of the tiers above (2)`,
		`Models[0].Name: "": must be given`,
		`Models[1].Criticality: "Vital": ` + tiers,
		`Models[2].Name: "m": must be unique`,
		`Models[2].Targets[0].Name: "": must be given`,
		`Models[2].Targets[0].Weight: 0: must be from 1 to 1000000`,
		`Models[2].Targets[1].Weight: 1000001: must be from 1 to 1000000`,
		`OtherTargets[0].Weight: 0: must be from 1 to 1000000`,
		`Objectives[0].Name: "": must be given`,
		`Objectives[2].Name: "o": must be unique`,
		`Criticality.Default: "none": ` + tiers,
		`TenantPolicies["*"].MaxClass: "": ` + tiers,
		`TenantPolicies["vip"].Class: "gentry": ` + tiers,
		`TenantPolicies["vip"].MaxClass: "nobility": ` + tiers,
		`Criticality.Header: "a b": must be the name of a header`,
		`Criticality.Metadata: "x": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
		`Criticality.ObjectiveHeaders: 5 headers: must be at most 4`,
		`Criticality.ObjectiveHeaders[0]: "": must be the name of a header`,
		`Criticality.ObjectiveHeaders[1]: "a b": must be the name of a header`,
		`Criticality.ObjectiveHeaders[3]: "c": must be unique`,
		`PolicyClass.Headers: 3 headers: must be at most 2`,
		`PolicyClass.Headers[0]: "a b": must be the name of a header`,
		`PolicyClass.Headers[1]: "A b": must be the name of a header`,
		`PolicyClass.PriorityHeader: "é": must be the name of a header`,
		`PolicyClass.MaxStrictPriority: -1: must be from 0 to 8191`,
		`TrustedHeaders.Model: "a:b": must be the name of a header`,
		`TrustedHeaders.Cost: "ä": must be the name of a header`,
		`TrustedHeaders.InputTokens: "c d": must be the name of a header`,
		`DeadlineHeaders[0]: "": must be the name of a header`,
		`RequestBody: "sometimes": must be one of auto, always, never`,
		`UnknownModels: "some": must be one of own, shared`,
		`Anonymous: "nobody": must be one of model, shared`,
		`PassOn: "drop": must be one of pick, queue`,
		`PassOnPaths[0]: "/a?b": must be a path as clients send it: from its first slash, without the query`,
		`PassOnPaths[1]: "c": must be a path as clients send it: from its first slash, without the query`,
		`PassOnPaths[2]: "": must be given`,
		`PassOnPaths[4]: "/d": must be unique`,
		`Affinity.Mode: "": must be one of off, prefix, session`,
		`Affinity.Scope: "": must be one of all, flow`,
		`Affinity.Session: "": must be header:NAME, cookie:NAME or body:prompt_cache_key`,
		`Limits.MaxBodyBytesTotal: 0: must be at least 1`,
		`Limits.BodyTimeout: 1h0m0.000000001s: must be above 0s and at most 1h`,
		`Limits.MaxHeaderBytes: 0: must be at least 1`,
		`Limits.MaxHeaders: 0: must be at least 1`,
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("problem %d: got\n%s\nwant\n%s", i, strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
		}
	}
	cfg = DefaultConfig()
	cfg.Tiers, cfg.FlowKey, cfg.Limits.MaxBodyBytes, cfg.DeadlineHeaders = nil, nil, maxBody+1, make([]string, maxDeadlineHeaders+1)
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "FlowKey: []: must name at least one source\n") ||
		!strings.Contains(err.Error(), "Tiers: []: must have at least one tier\n") ||
		!strings.Contains(err.Error(), "DeadlineHeaders: 17 headers: must be at most 16\n") ||
		!strings.Contains(err.Error(), "Limits.MaxBodyBytes: 1073741825: must be at most 1073741824 (1 GiB)") {
		t.Errorf("%v", err)
	}
}

// The ends of ranges are valid.
func TestEndsOfRanges(t *testing.T) {
	for _, test := range []struct {
		change func(*Limits)
		valid  bool
	}{
		{func(l *Limits) { l.MaxBodyBytes, l.MaxBodyBytesTotal = maxBody, maxBody }, true},
		{func(l *Limits) { l.MaxBodyBytes, l.MaxBodyBytesTotal = maxBody+1, maxBody+1 }, false},
		{func(l *Limits) { l.MaxBodyBytesTotal = l.MaxBodyBytes }, true},
		{func(l *Limits) { l.MaxBodyBytes = 1 }, true},
		{func(l *Limits) { l.MaxBodyBytes = 0 }, false},
		{func(l *Limits) { l.BodyTimeout = longestBodyTimeout }, true},
		{func(l *Limits) { l.BodyTimeout = 1 }, true},
		{func(l *Limits) { l.BodyTimeout = 0 }, false},
	} {
		cfg := DefaultConfig()
		test.change(&cfg.Limits)
		if err := cfg.Validate(); (err == nil) != test.valid {
			t.Errorf("%+v: %v", cfg.Limits, err)
		}
	}
}

// The name of a header is a token.
func TestHeaderNames(t *testing.T) {
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", "x-Y_1", "!#$%&'*+-.^_`|~"} {
		if !isHeaderName(name) {
			t.Errorf("%q is one", name)
		}
	}
	for _, name := range []string{"", " ", "a b", "a:b", "[", "{", "@", "/", ":method", "é", "\xff", "a\n"} {
		if isHeaderName(name) {
			t.Errorf("%q is none", name)
		}
	}
}
