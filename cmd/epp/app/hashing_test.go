package app

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
)

// With --hash-flow-keys a weight, a capacity and a policy hold for the key's hash, whether the file has the key or the
// hash, and the page shows neither key; a model's flow keeps its name.
func TestHashFlowKeys(t *testing.T) {
	hash := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s)))[:7+32] }
	const text = `
flows: { key: [ "header:authorization", model ], weights: { sk-1: 3, m/m: 2, HASH: 5 }, capacities: { sk-1: 7 } }
tenantPolicies: { sk-1: { maxClass: default } }
`
	d, err := config.Load(config.Source{Text: []byte(strings.Replace(text, "HASH", `"`+hash("sk-2")+`"`, 1))})
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.HashFlowKeys = true
	flow, streams := o.converted(&d)
	w := flow.Queue.Weights
	if w[hash("sk-1")] != 3_000_000 || w[hash("sk-2")] != 5_000_000 || w["m/m"] != 2_000_000 ||
		flow.Queue.FlowCapacities[hash("sk-1")] != 7 || !streams.HashFlowKeys {
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
