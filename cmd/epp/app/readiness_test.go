package app

import (
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// Every health service reports the state of its conditions.
func TestReadiness(t *testing.T) {
	_, health := newHealthServer()
	r := newReadiness(health)
	r.set(synced, false)
	r.set(leading, false)
	for _, c := range []struct {
		condition     condition
		holds         bool
		synced, ready bool
		lacks         string
	}{
		{leading, true, false, false, "starting, not synced"}, // before everything listens
		{synced, true, false, false, "starting"},
		{synced, false, false, false, "starting, not synced"},
		{leading, false, false, false, "starting, not synced, not the leader"},
		{listening, true, false, false, "not synced, not the leader"},
		{synced, true, true, false, "not the leader"}, // a follower is sound
		{leading, true, true, true, ""},
		{leading, false, true, false, "not the leader"},
		{leading, true, true, true, ""},
		{open, false, false, false, "draining"},
		{synced, true, false, false, "draining"},
	} {
		r.set(c.condition, c.holds)
		for service, want := range map[string]bool{
			"liveness": true, "synced": c.synced, "": c.synced, "inference-extension": c.synced,
			"readiness": c.ready, "envoy.service.ext_proc.v3.ExternalProcessor": c.ready,
		} {
			answer, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
			if err != nil || (answer.GetStatus() == healthv1.HealthCheckResponse_SERVING) != want {
				t.Errorf("%q is %v, %v with %q lacking", service, answer.GetStatus(), err, c.lacks)
			}
		}
		if r.lacks() != c.lacks || r.ready() != (c.lacks == "") {
			t.Errorf("lacks %q, want %q", r.lacks(), c.lacks)
		}
	}
}
