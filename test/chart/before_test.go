//go:build upgrade

package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// inRecords is the line of /statusz with the other replicas' requests in flight by their records.
var inRecords = regexp.MustCompile(`(?m)^elsewhere\s+(\d+)`)

// Helm upgrades the previous version to this one under load, pod by pod like a Deployment, and rolls it back, behind
// the Envoy of its chart: in docs/upgrade.md Weir is upgraded first, and Envoy rolled back first. Both versions elect
// one leader and publish it, so a new replica follows until the old leader ends. Each counts the other's records: a new
// replica the old leader's requests in flight, and an old one, in the rollback, the new leader's. No request fails or
// bypasses Weir, and the engine has at most the bound and the dispatches of a retry period.
func TestUpgradeFromTheVersionBefore(t *testing.T) {
	r := newRollOut(t, true, 0)
	r.u.presentWith(r.values)
	r.replace("present", "127.0.9.3", "127.0.9.4")
	r.settled("the upgrade", 0)
	r.u.helm("rollback", release, "1")
	r.replace("earlier", "127.0.9.5", "127.0.9.6")
	r.settled("the rollback", 0)
}

// replace replaces both replicas by those of a version: each new one is there before an old one ends, and the leader
// ends last.
func (r *rollOut) replace(version string, ips ...string) {
	r.t.Helper()
	first := r.start(version, ips[0])
	r.reads(first)
	r.end(r.h.second)
	second := r.start(version, ips[1])
	r.end(r.h.first)
	r.h.first, r.h.second = r.leads(first, second)
	r.u.leadsTo(podIP(r.h.first.ip))
}

// reads waits until a replica counts the leader's requests in flight: most of the bound, which is full, and no more.
func (r *rollOut) reads(d *deployed) {
	r.t.Helper()
	d.await("the replica reads the leader's record", func() error {
		page := d.debug("/statusz")
		found := inRecords.FindStringSubmatch(page)
		if found == nil {
			return fmt.Errorf("no record in\n%s", page)
		}
		if n, err := strconv.Atoi(found[1]); err != nil || n < handoverBound-handoverBound/4 || n > handoverBound {
			return fmt.Errorf("the record has %s requests in flight, want nearly %d", found[1], handoverBound)
		}
		return nil
	})
}
