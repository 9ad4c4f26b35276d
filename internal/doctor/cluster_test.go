package doctor

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/pki"
)

// Each mistake in a cluster is one finding, and a cluster without one has none. TestDoctorOfACluster in test/kube has a
// real apiserver.
func TestClusters(t *testing.T) {
	authority := pki.NewAuthority(t)
	pair := func(edit func(*x509.Certificate)) Certificate {
		certificate, key := authority.Issue("weir", edit)
		return Certificate{Where: "Secret ns/tls", PEM: certificate, Key: key}
	}
	good := func() Cluster {
		return Cluster{
			Now: time.Now(), Namespace: "ns", Own: "ns",
			Kinds: []Kind{
				{Group: "g", Version: "v1", Resource: "pools", Needed: true, Served: []string{"v1alpha2", "v1"}},
				{Group: "g", Version: "v1", Resource: "objectives"},
			},
			Permissions:  []Permission{{Verb: "list", Resource: "pods", Namespace: "ns", Allowed: true}},
			Pool:         Pool{Object: "InferencePool ns/chat", Selector: "app=chat", Matched: 2, WithAddress: 2, Ready: 1},
			Slice:        Slice{Name: "weir", Service: "weir", Pods: []string{"weir-0"}, Leader: "weir-0", Lease: "chat-weir"},
			Certificates: []Certificate{pair(nil)},
		}
	}
	if r := ExamineCluster(good()); len(r.Findings) != 0 {
		t.Errorf("nothing is wrong: %v", places(r))
	}
	if r := ExamineCluster(Cluster{}); len(r.Findings) != 0 {
		t.Errorf("nothing was asked: %v", places(r))
	}
	now := time.Now()
	found := map[string]bool{}
	for _, c := range []struct {
		check string
		with  func(*Cluster)
	}{
		{"crd-version", func(c *Cluster) { c.Kinds[0].Served = nil }},
		{"crd-version", func(c *Cluster) { c.Kinds[0].Served = []string{"v1alpha2"} }},
		{"crd-version", func(c *Cluster) { c.Kinds[1].Served = []string{"v1alpha2"} }},
		{"permission", func(c *Cluster) { c.Permissions[0].Allowed = false }},
		{"pool-pods", func(c *Cluster) { c.Pool.Missing = true }},
		{"pool-pods", func(c *Cluster) { c.Pool.Problem = "no ports" }},
		{"pool-pods", func(c *Cluster) { c.Pool.Matched = 0 }},
		{"pool-pods", func(c *Cluster) { c.Pool.Ready = 0 }},
		{"leader-slice", func(c *Cluster) { c.Slice.Missing = true }},
		{"leader-slice", func(c *Cluster) { c.Slice.Service = "" }},
		{"leader-slice", func(c *Cluster) { c.Slice.Leader = "" }},
		{"leader-slice", func(c *Cluster) { c.Slice.Leader = "weir-1" }},
		{"leader-slice", func(c *Cluster) { c.Slice.Pods = nil }},
		{"certificate", func(c *Cluster) { c.Certificates[0].Problem = "there is none" }},
		{"certificate", func(c *Cluster) { c.Certificates[0].PEM = nil }},
		{"certificate", func(c *Cluster) { c.Certificates[0].Key = pair(nil).Key }},
		{"certificate", func(c *Cluster) { c.Now = now.Add(2 * time.Hour) }},
		{"certificate", func(c *Cluster) { c.Now = now.Add(-2 * time.Hour) }},
		{"certificate", func(c *Cluster) { c.Now = now.Add(55 * time.Minute) }},
	} {
		cluster := good()
		c.with(&cluster)
		if r := ExamineCluster(cluster); !slices.Equal(ids(r), []string{c.check}) {
			t.Errorf("%s: found %v", c.check, places(r))
		}
		found[c.check] = true
	}
	for _, c := range clusterChecks() {
		if !found[c.ID] {
			t.Errorf("no cluster with the trap %s", c.ID)
		}
	}
}
