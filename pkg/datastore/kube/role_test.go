package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// label sets the label of a role.
func label(role string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{LabelRole: role, "app": "chat"} }
}

// The role is that of llm-d's label, which outlives the trimming of pods. One that does not exist keeps requests away, and is
// a problem of the pod.
func TestRolesOfPods(t *testing.T) {
	for _, c := range []struct {
		role    string
		want    scheduling.Work
		problem string
	}{
		{"decode", scheduling.WorkDecode, ""},
		{"prefill", scheduling.WorkPrefill, ""},
		{"both", scheduling.WorkAll, ""},
		{"prefill-decode", scheduling.WorkAll, ""},
		{"encode", scheduling.WorkNone, ""},
		{"", scheduling.WorkAll, ""},
		{"Decode", scheduling.WorkNone, `metadata.labels[llm-d.ai/role]: "Decode": is no role`},
	} {
		pod := running(label(c.role))
		trimPod(pod)
		m := memberOf(pod)
		if m.work != c.want || !strings.HasPrefix(m.problem, c.problem) || c.problem == "" && m.problem != "" {
			t.Errorf("%q: %v, %q, want %v, %q", c.role, m.work, m.problem, c.want, c.problem)
		}
		for _, e := range m.endpoints(nil, []int{8000}) {
			if e.Work != c.want || !e.Ready {
				t.Errorf("%q: endpoint %+v", c.role, e)
			}
		}
	}
	if plain, labelled := memberOf(running()), memberOf(running(label("prefill"))); plain.equal(&labelled) {
		t.Error("a pod with another role is taken for the same")
	} else if plain.work != scheduling.WorkAll || plain.problem != "" {
		t.Errorf("without the label: %v, %q", plain.work, plain.problem)
	}
}

// The ranks of a data-parallel engine are ports of one pod, up to 8 of an InferencePool: endpoints of their own, by identity
// and address, with the role of the pod; ready together, and found by the subset hint each alone or together by the pod's IP.
func TestRanksAreEndpoints(t *testing.T) {
	ports := []int{8000, 8001, 8002, 8003, 8004, 8005, 8006, 8007}
	first, second := memberOf(running(label("decode"))), memberOf(running(func(p *corev1.Pod) {
		p.UID, p.Status.PodIP, p.Status.Conditions = "v", "10.0.0.2", nil
	}))
	endpoints := second.endpoints(first.endpoints(nil, ports), ports)
	if len(endpoints) != 16 {
		t.Fatalf("%d endpoints of two pods with 8 ports", len(endpoints))
	}
	keys := map[string]bool{}
	for i := range endpoints {
		e := &endpoints[i]
		e.ID = scheduling.EndpointID(i)
		keys[e.Key] = true
		if e.Ready != (i < 8) {
			t.Errorf("%s is ready: %t", e.Address, e.Ready)
		}
	}
	if len(keys) != 16 || endpoints[3].Key != "u:8003" || endpoints[3].Address != "10.0.0.1:8003" || endpoints[3].Work != scheduling.WorkDecode {
		t.Errorf("%d identities; the fourth is %+v", len(keys), endpoints[3])
	}
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for entry, want := range map[string]int{"10.0.0.1:8003": 1, "10.0.0.1": 8, "10.0.0.2:8003": 0} {
		board := scheduling.NewBoard(scheduler, nil)
		board.SetSnapshot(scheduling.NewSnapshot(1, endpoints))
		got := map[string]bool{}
		query, err := scheduler.Prepare(board.Snapshot(), scheduling.Ask{Subset: scheduling.Subset{Set: true, Entries: []string{entry}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			if board.Place(query, scheduling.Unbounded, nil).Empty() {
				continue
			}
			address, _ := query.Chosen()
			got[address] = true
		}
		if len(got) != want || want == 1 && !got[entry] {
			t.Errorf("subset %s: placed at %v, want %d endpoints", entry, got, want)
		}
	}
}
