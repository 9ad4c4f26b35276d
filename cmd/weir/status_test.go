package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/status"
)

// The exit code is the state of the pool: 0 healthy, 1 degraded with reasons, 2 unreachable.
func TestStatusCommand(t *testing.T) {
	well, ill, follows := healthyPool(), healthyPool(), healthyPool()
	ill.Healthy, ill.Reasons = false, []status.Reason{{ID: "no-engine", Text: "no engine is ready, of 2"}}
	follows.Pool.Leads, follows.Pool.Ready, follows.Pool.Lacks, follows.Pool.Leader = false, false, "not the leader", "weir-1"
	a, b, c := serveStatus(t, well).address(), serveStatus(t, ill).address(), serveStatus(t, follows).address()
	closed := httptest.NewServer(nil)
	closed.Close()
	gone := strings.TrimPrefix(closed.URL, "http://")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	checkCommands(t, map[string]commandTest{
		"a URL":       {[]string{"status", "--address", "http://" + a + "/"}, 0, []string{"healthy"}, nil},
		"other port":  {[]string{"status", "--address", other.URL}, 2, []string{"is that the debug port (--debug-port, 9004)?"}, nil},
		"no flow":     {[]string{"status", "--address", a, "--flow=nosuch"}, 0, []string{"healthy"}, []string{`no flow has "nosuch" in its name; active are `, "ann"}},
		"healthy":     {[]string{"status", "--address", a}, 0, []string{"healthy", "1 of 1 ready", "ann"}, nil},
		"degraded":    {[]string{"status", "--address", b}, 1, []string{"DEGRADED\n  no-engine: no engine is ready, of 2"}, nil},
		"unreachable": {[]string{"status", "--address", gone}, 2, []string{"UNREACHABLE\n  no epp answers at its debug port"}, nil},
		"a follower":  {[]string{"status", "--address", c}, 0, []string{"healthy", "a follower: the leader is weir-1"}, nil},
		"replicas":    {[]string{"status", "--address", a + "," + c}, 0, []string{"healthy", "replica " + a, "replica " + c, "a follower: the leader is weir-1"}, nil},
		"one is gone": {[]string{"status", "--address", a, "--address", gone}, 1, []string{"DEGRADED\n  " + gone + ": no epp answers"}, nil},
		"a part":      {[]string{"status", "--address", a, "--flow=NN", "--sort-flows=flow"}, 0, []string{"ann"}, nil},
		"format":      {[]string{"status", "-o", "yaml"}, 2, nil, []string{`--output: "yaml": must be text or json`}},
		"rows":        {[]string{"status", "--flows=1001"}, 2, nil, []string{`--flows: "1001": must be from 0 to 1000`}},
	})
}

func TestStatusAsJSON(t *testing.T) {
	ill := healthyPool()
	ill.Healthy, ill.Reasons = false, []status.Reason{{ID: "no-engine", Text: "no engine is ready, of 2"}}
	address := serveStatus(t, ill).address()
	var stdout, stderr bytes.Buffer
	if code := run([]string{"status", "-o", "json", "--address", address, "--flows=1"}, &stdout, &stderr); code != 1 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var got statusJSON
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != 1 || got.Verdict != "degraded" || len(got.Reasons) != 1 || len(got.Replicas) != 1 || got.Replicas[0].Address != address || got.Replicas[0].Status.LeftOut.Flows != 1 {
		t.Errorf("got %s", stdout.String())
	}
}
