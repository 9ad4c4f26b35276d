package main

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// weir engine reports all wrong flags at once.
func TestEngineErrors(t *testing.T) {
	var out, errs strings.Builder
	code := runEngine(strings.Fields("--port 70000 --count 0 --host nowhere --model= --slots 0 --kv-tokens 8 --token-budget 0 "+
		"--prefill-tokens-per-second 0 --step-time 0 --step-time-per-sequence 2m --bytes-per-token 0 --max-model-len -1 "+
		"--output-tokens 0 --early-stop 2 --kv-events-port -2"), &out, &errs)
	if code != 2 || out.Len() > 0 {
		t.Errorf("code %d, %s", code, out.String())
	}
	for _, want := range []string{
		"--port: 70000: must be from 0 to 65535", "--count: 0", `--host: "nowhere": must be an IP address`, "--model: must be a name",
		"--slots: 0", "--kv-tokens: 8: has no room for a block of 16", "--token-budget: 0", "--prefill-tokens-per-second: 0",
		"--step-time: 0s: must be from 1µs to 1m", "--step-time-per-sequence: 2m", "--bytes-per-token: 0", "--max-model-len: -1",
		"--output-tokens: 0", "--early-stop: 2", "--kv-events-port: -2",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%s\nwant %s", errs.String(), want)
		}
	}
	errs.Reset()
	if code = runEngine([]string{"--port", "65535", "--count", "2"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "no 2 ports from 65535") {
		t.Errorf("code %d, %s", code, errs.String())
	}
}

// startEngines runs `weir engine` on free ports until the test ends, and returns the engines' addresses.
func startEngines(t *testing.T, args ...string) []string {
	t.Helper()
	var o engineOptions
	set := flagSet("weir engine")
	o.flags(set)
	if err := set.Parse(append([]string{"--port=0"}, args...)); err != nil {
		t.Fatal(err)
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- o.serve(writer, stop) }()
	t.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var urls []string
	for lines := bufio.NewScanner(reader); len(urls) < o.count && lines.Scan(); {
		_, url, _ := strings.Cut(lines.Text(), " at ")
		urls = append(urls, url)
	}
	if len(urls) != o.count {
		t.Fatalf("%d engines of %d", len(urls), o.count)
	}
	return urls
}

// Each engine publishes KV events at its own port, and prints the port.
func TestEnginePublishes(t *testing.T) {
	var o engineOptions
	set := flagSet("weir engine")
	o.flags(set)
	if err := set.Parse([]string{"--port=0", "--count=2", "--kv-events-port=-1"}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	stop := make(chan struct{})
	close(stop)
	if err := o.serve(&out, stop); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "  KV events at tcp://127.0.0.1:"); n != 2 {
		t.Errorf("%d publishers: %s", n, out.String())
	}
}

// An engine has the pages that pickers read, with the values of its flags, and reports cached tokens on request.
func TestEngineServes(t *testing.T) {
	get := func(method, url, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.Status + "\n" + string(text)
	}
	urls := startEngines(t, "--count=2", "--model=m", "--kv-tokens=1600", "--max-model-len=999", "--step-time=1us", "--enable-prompt-tokens-details")
	chat := `{"messages":[{"role":"user","content":"` + strings.Repeat("a word ", 40) + `"}],"max_tokens":2}`
	get(http.MethodPost, urls[0]+"/v1/chat/completions", chat)
	for _, c := range []struct{ method, path, body, want string }{
		{http.MethodGet, "/v1/models", "", `"id":"m"`},
		{http.MethodGet, "/v1/models", "", `"max_model_len":999`},
		{http.MethodGet, "/health", "", "200 OK"},
		{http.MethodGet, "/metrics", "", `block_size="16",num_gpu_blocks="100"`},
		{http.MethodPost, "/v1/chat/completions", chat, `"prompt_tokens_details":{"cached_tokens":64}`},
		{http.MethodGet, "/metrics", "", `vllm:prefix_cache_hits_total{engine="0",model_name="m"} 64`},
		{http.MethodPost, "/debug/faults", `{"requests":1,"status":503}`, "204"},
		{http.MethodPost, "/v1/chat/completions", chat, "503"},
		{http.MethodPost, "/v1/chat/completions", chat, "200"},
	} {
		if got := get(c.method, urls[0]+c.path, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s\nwant %s", c.method, c.path, got, c.want)
		}
	}
	if got := get(http.MethodGet, urls[1]+"/metrics", ""); !strings.Contains(got, `vllm:prefix_cache_queries_total{engine="0",model_name="m"} 0`) {
		t.Errorf("the other engine has the first one's requests: %s", got)
	}
}
