package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// weir load reports all wrong arguments at once, and a wrong line of the trace before it sends a request.
func TestLoadErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"t.jsonl": `{"timestamp": 0, "input_length": 5, "output_length": 1}` + "\n{}\n", "w.yaml": "kind: Workload\n",
		"late.csv": "arrival,input,output\n0,5,1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{
		"": "must be followed by one TRACE|--to: missing",
		"a b --to=x --api=y --speed=0 --requests=0 --connections=0 --duration=1ms --timeout=48h --header=x --repeat=0": `"b": only one TRACE is allowed|` +
			`--to: "x": must be http://|--api: "y"|--speed: 0|--requests: 0|--connections: 0|--duration: 1ms: must be from 1s|--timeout: 48h|--header: "x"|--repeat: 0`,
		"none.jsonl --to=http://127.0.0.1:1":            "none.jsonl",
		"t.jsonl --to=http://127.0.0.1:1":               "t.jsonl: line 2: timestamp: missing",
		"w.yaml --to=http://127.0.0.1:1":                "w.yaml: invalid, 3 problems:",
		"late.csv --to=http://127.0.0.1:1 --timeout 1s": "http://127.0.0.1:1 answered none of 1 requests; the first: ",
	} {
		var out, errs bytes.Buffer
		code := runLoad(strings.Fields(args), &out, &errs)
		for part := range strings.SplitSeq(want, "|") {
			if code == 0 || !strings.Contains(errs.String(), part) {
				t.Errorf("%s: code %d: %s\nwant %s", args, code, errs.String(), part)
			}
		}
	}
}

// The engines' cache has the blocks shared in the trace, and usage reports them: the same hits as in weir simulate. A
// group has a request every 300 ms: a request before the end of the last one's prompt finds nothing.
func TestLoadHitsWhatTheTraceShares(t *testing.T) {
	var trace strings.Builder
	for i := range 20 {
		// 3 groups with two blocks of 512 in common, and one of its own.
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 1536, "output_length": 3, "hash_ids": [%d, %d, %d]}`+"\n", i*1000, i%3, 10+i%3, 100+i)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.jsonl", []byte(trace.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{"chat", "completions"} {
		to := startEngines(t, "--step-time=100us", "--prefill-tokens-per-second=10000000", "--enable-prompt-tokens-details")[0]
		var out, errs bytes.Buffer
		if code := runLoad([]string{"t.jsonl", "--to", to, "--speed=10", "--json", "--api", api}, &out, &errs); code != 0 {
			t.Fatal(errs.String())
		}
		var r loadReport
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if a := r.All; a.Answered != 20 || a.PromptTokens != 20*1536 || a.OutputTokens != 60 || a.WithoutUsage != 0 || a.TTFT.Mean < a.Wait.Mean {
			t.Errorf("%s: %+v", api, a)
		}
		// 17 of the prompts find 1,024 tokens. The API's own bytes may cost each prompt a block of 16, or give it one.
		if got := r.All.CachedTokens; got < 17*1008 || got > 20*16+17*1040 {
			t.Errorf("%s: %d tokens cached, want about %d", api, got, 17*1024)
		}
	}
}

// Requests are sent at their times, with their flow, limit and model. Requests beyond the connections are not sent, and
// count as errors like missing answers.
func TestLoadIsBounded(t *testing.T) {
	var mu sync.Mutex
	var got []string
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model     string `json:"model"`
			MaxTokens int    `json:"max_tokens"`
			Stream    bool   `json:"stream"`
			IgnoreEOS bool   `json:"ignore_eos"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		got = append(got, fmt.Sprint(r.URL.Path, body, r.Header["X-Flow"], r.Header["X-Tier"], r.Header["X-Key"]))
		n := len(got)
		mu.Unlock()
		if n == 1 {
			w.Header().Set("X-Weir-Reason", "queue_full")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if n == 3 { // the next one has no connection
			time.AfterFunc(time.Second, func() { close(release) })
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {}\n\ndata: [DONE]\n\n"))
	}))
	defer server.Close()
	t.Chdir(t.TempDir())
	trace := "arrival,flow,tier,input,output\n0,a,gold,9,3\n1.5,b,,9,4\n1.5,b,,9,4\n1.5,c,,9,5\n3600,late,,1,1\n"
	if err := os.WriteFile("t.csv", []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := runLoad([]string{
		"t.csv", "--to", server.URL, "--connections=2", "--flow-header=x-flow", "--tier-header=x-tier", "--header=x-key: k", "--model=m",
	}, &out, &errs)
	if code != 0 {
		t.Fatal(errs.String())
	}
	want := "/v1/chat/completions{m 3 true true} [a] [gold] [k]|/v1/chat/completions{m 4 true true} [b] [] [k]|/v1/chat/completions{m 4 true true} [b] [] [k]"
	if sent := strings.Join(got, "|"); sent != want {
		t.Errorf("sent %s\nwant %s", sent, want)
	}
	for _, line := range []string{"429 queue_full: 1", "- unsent: 1", "2 answers without usage"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}
