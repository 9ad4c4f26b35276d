package app

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
)

// With --hash-flow-keys a weight, a capacity and a policy apply to the hash of the key, whether the file has the key or
// the hash. The page shows no key. A model's flow keeps its name.
func TestHashFlowKeys(t *testing.T) {
	hash := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s)))[:7+32] }
	const text = `
flows: { key: [ "header:authorization", model ], weights: { sk-1: 3, m/m: 2, HASH: 5 }, capacities: { sk-1: 7 } }
cost: tokens
tenantPolicies: { sk-1: { maxClass: default, quota: { tokens: 9, window: 1h } } }
`
	d, err := config.Load(config.Source{Profile: config.ProfileWFQ, Text: []byte(strings.Replace(text, "HASH", `"`+hash("sk-2")+`"`, 1))})
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.HashFlowKeys = true
	flow, streams := o.converted(&d)
	w := flow.Queue.Weights
	if w[hash("sk-1")] != 3_000_000 || w[hash("sk-2")] != 5_000_000 || w["m/m"] != 2_000_000 ||
		flow.Queue.FlowCapacities[hash("sk-1")] != 7 || flow.Quotas.Tenants[hash("sk-1")].Tokens != 9 || !streams.HashFlowKeys {
		t.Errorf("weights %v, capacities %v", w, flow.Queue.FlowCapacities)
	}
	c := configuration{document: d, hashed: true}
	page, err := c.page()
	if err != nil || strings.Contains(string(page), "sk-1") || strings.Count(string(page), hash("sk-1")) != 3 {
		t.Errorf("%v\n%s", err, page)
	}
	o.HashFlowKeys = false
	if flow, streams = o.converted(&d); len(flow.Queue.Weights) != 3 || streams.HashFlowKeys {
		t.Error("hashed without the flag")
	}
}

// With --hash-flow-keys a running program never shows the keys in its file: not on its page, not in a warning about a
// key without effect, and not after a reload.
func TestHashedFlowKeysAreShownNowhere(t *testing.T) {
	text := func(weight string) string {
		return "flows: { key: [ model ], weights: { anonymous: 2, sk-secret: " + weight + " } }\n" +
			"tenantPolicies: { sk-secret: { maxClass: default } }\ndecisions: { explain: [ sk-secret ] }\n"
	}
	r := startReloading(t, text("3"), func(o *Options) { o.HashFlowKeys = true })
	check := func(when, weight string) {
		_, page := r.debug("/debug/config")
		hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("sk-secret")))[:7+32]
		if !strings.Contains(page, hash+": "+weight) || !strings.Contains(page, "anonymous: 2") ||
			!strings.Contains(r.log.String(), "flows.weights."+hash) || !strings.Contains(r.log.String(), "tenantPolicies."+hash) {
			t.Errorf("%s: the hash is not shown\n%s\n%s", when, page, r.log)
		}
		if strings.Contains(page+r.log.String(), "sk-secret") {
			t.Errorf("%s: the key is shown\n%s\n%s", when, page, r.log)
		}
	}
	check("at the start", "3")
	expect.Replaced(t, r.file, text("4"))
	expect.True(t, "the reload", func() bool { return r.Config().Flows.Weights["sk-secret"] == 4_000_000 })
	check("after a reload", "4")
}
