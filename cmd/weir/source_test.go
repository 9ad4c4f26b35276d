package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An epp's debug port is read at /debug/recording; its reason for an error is shown, and cannot command the terminal.
func TestExplainReadsADebugPort(t *testing.T) {
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/recording" {
			http.Error(w, "nothing is recorded\x1b[2J, since recording is 0", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"number":7,"flow":"a","outcome":"dispatched","waitedSeconds":2}` + "\n"))
	}))
	defer port.Close()
	for _, c := range []struct {
		address, stdout, stderr string
		code                    int
	}{
		{port.URL, `"number":7`, "", 0},
		{port.URL + "/", `"number":7`, "", 0},
		{port.URL + "/debug/recording", `"number":7`, "", 0},
		{port.URL + "/elsewhere", "", "/elsewhere: status 404: nothing is recorded�[2J, since recording is 0", 1},
		{"http://127.0.0.1:1", "", "connection refused", 1},
	} {
		var stdout, stderr strings.Builder
		code := run([]string{"explain", c.address, "-o", "json"}, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: code %d: %s%s", c.address, code, stdout.String(), stderr.String())
		}
	}
}
