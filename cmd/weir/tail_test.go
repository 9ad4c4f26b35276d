package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/status"
)

// serveStatusAndTail serves the status of a healthy pool, and a tail that ends when the status was read twice.
func serveStatusAndTail(t *testing.T) string {
	statuses, read := serveStatus(t, healthyPool()), make(chan struct{}, 9)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/tail" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-read
			<-read
			return
		}
		statuses.Config.Handler.ServeHTTP(w, r)
		read <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return "--address=" + strings.TrimPrefix(s.URL, "http://")
}

// A line has an operator's data without control characters, and weir tail prints the reason for its end.
func TestTailCommand(t *testing.T) {
	serve := func(lines ...status.Ended) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/debug/tail" || r.URL.Query().Get("flow") != "ann" || r.URL.Query().Get("outcome") != "dispatched,flow-full" {
				http.Error(w, "asked for "+r.URL.String(), http.StatusBadRequest)
				return
			}
			for _, l := range lines {
				_ = json.NewEncoder(w).Encode(l)
			}
		}))
		t.Cleanup(s.Close)
		return "--address=" + strings.TrimPrefix(s.URL, "http://")
	}
	served := status.Ended{
		At: time.Date(2026, 3, 1, 3, 0, 7, 123e6, time.UTC), ID: "r\x1b[1m-1", Flow: "ann", Tier: "default", Model: "m", TargetModel: "m-7b", Wait: 1.5, After: 3.25,
		Endpoint: "10.0.0.1:8000", Outcome: "dispatched", Status: 200, Usage: &status.Usage{Input: 100, Output: 20},
	}
	rejected := status.Ended{Flow: "ann", Outcome: "flow-full", Status: 429, Error: "full\n", RetryAfter: 2}
	dropped := status.Ended{Dropped: "this reader was too slow"}
	of := []string{"--flow=ann", "--outcome=dispatched,flow-full"}
	tail := func(more ...string) []string { return append(append([]string{"tail"}, of...), more...) }
	line := "03:00:07.123 dispatched         200 flow=ann tier=default model=m target=m-7b wait=1.5s took=3.2s endpoint=10.0.0.1:8000 tokens=100+20 id=r\uFFFD[1m-1\n"
	checkCommands(t, map[string]commandTest{
		"it ends":     {tail(serve(served, rejected)), 1, []string{line, "flow-full          429 flow=ann wait=0ms took=0ms retry-after=2.0s error=\"full\\n\"\n"}, []string{"the epp has ended"}},
		"enough":      {tail(serve(served, served, rejected), "--lines=2"), 0, []string{line + line}, nil},
		"dropped":     {tail(serve(served, dropped)), 1, []string{line}, []string{"the epp dropped this reader, which was too slow"}},
		"as JSON":     {tail(serve(served), "-o", "json", "--lines=1"), 0, []string{`"outcome":"dispatched"`, `"usage":{"input":100,"output":20,"cached":0}`}, nil},
		"refused":     {[]string{"tail", serve()}, 2, nil, []string{"/debug/tail answers 400 Bad Request: asked for /debug/tail"}},
		"unreachable": {tail("--address=127.0.0.1:1"), 2, nil, []string{"no epp answers at its debug port"}},
		"one is away": {tail(serve(served, served), "--address=127.0.0.1:1", "--lines=2"), 0, []string{line + line}, nil},
		"both end":    {tail(serve(served), "--address=127.0.0.1:1"), 2, []string{line}, []string{"127.0.0.1:1: no epp answers at its debug port", "the epp has ended"}},
		"no flow":     {[]string{"tail", "--flow=nosuch", serveStatusAndTail(t)}, 1, nil, []string{`no flow has "nosuch" in its name; active are `, "ann"}},
		"lines":       {tail("--lines=-1"), 2, nil, []string{"--lines: -1: must be at least 0"}},
	})
}
