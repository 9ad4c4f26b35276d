package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// sidecar stands before a decode engine, as llm-d's does. If a request names a prefill engine, that one reads the
// prompt, for one token, and then the decode engine answers.
type sidecar struct {
	decode *httputil.ReverseProxy

	mu   sync.Mutex
	seen []http.Header // of each request
}

func startSidecar(t *testing.T, decode string) (s *sidecar, address string) {
	t.Helper()
	s = &sidecar{decode: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: decode})}
	s.decode.FlushInterval = -1
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, strings.TrimPrefix(server.URL, "http://")
}

func (s *sidecar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Clone())
		s.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if prefill := r.Header.Get("x-prefiller-host-port"); err == nil && prefill != "" {
			err = read(prefill, r.URL.Path, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	s.decode.ServeHTTP(w, r)
}

// read lets an engine read the prompt of a request.
func read(engine, path string, body []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	fields["max_tokens"], fields["stream"] = 1, false
	delete(fields, "stream_options")
	body, _ = json.Marshal(fields)
	response, err := http.Post("http://"+engine+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, _ = io.Copy(io.Discard, response.Body); response.StatusCode != http.StatusOK {
		return fmt.Errorf("the prefill engine answers %s", response.Status)
	}
	return nil
}

// last returns the number of requests so far, and the prefill engines and encoders named by the last one.
func (s *sidecar) last() (n int, prefills, encoders []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = len(s.seen); n > 0 {
		prefills, encoders = s.seen[n-1].Values("x-prefiller-host-port"), s.seen[n-1].Values("x-encoder-hosts-ports")
	}
	return n, prefills, encoders
}

// The prefill engine reads a long prompt and the decode engine answers it. The prefill engine gets no short one. The
// sidecar never gets a client's own header. The prefill engine gets the next prompt as soon as an answer begins.
func TestPrefillAndDecodeApart(t *testing.T) {
	slow := modelsim.Fixed(8, 3*time.Second)
	var front *sidecar
	var fronted string
	s := start(t, setup{
		config: "profile: recommended\nscheduling: { prefillThreshold: 500, prefillTokens: 100 }\n",
		models: []modelsim.Config{slow, modelsim.Fixed(8, 10*time.Millisecond)}, file: true,
		fronts: func(engines []string) []string {
			front, fronted = startSidecar(t, engines[0])
			return []string{fronted, engines[1]}
		},
	})
	decode, prefill := s.models[0], s.models[1]
	s.epp.writeEndpoints(fmt.Sprintf("endpoints:\n- { address: %q, role: decode }\n- { address: %q, role: prefill }\n", fronted, prefill.Address()))
	expect.Eventually(t, "roles", func() error {
		if page := s.epp.status(); !strings.Contains(page, "prefill") {
			return fmt.Errorf("no prefill engine in\n%s", page)
		}
		return nil
	})
	prompt := func(number, tokens int, stream bool) string {
		return fmt.Sprintf(`{"model":"tiny","messages":[{"role":"user","content":"%d %s"}],"max_tokens":8,"stream":%v}`,
			number, strings.Repeat("words of a long prompt ", tokens*4/23+1), stream)
	}
	for i, c := range []struct {
		name   string
		tokens int
		forged []string
		reads  bool
	}{
		{"short", 50, nil, false},
		{"long", 2000, nil, true},
		{"short and forged", 50, []string{"x-prefiller-host-port", "127.0.0.1:1", "x-encoder-hosts-ports", "127.0.0.1:1"}, false},
		{"long and forged", 2000, []string{"X-Prefiller-Host-Port", "127.0.0.1:1", "x-prefiller-host-port", "127.0.0.1:2"}, true},
	} {
		before, read := decode.Stats().Completed, prefill.Stats().Completed
		wantServed(t, c.name, s.send(ask{body: prompt(i, c.tokens, false), header: c.forged}))
		var want []string
		if c.reads {
			want = []string{prefill.Address()}
		}
		n, named, encoders := front.last()
		if n != i+1 || !slices.Equal(named, want) || len(encoders) > 0 {
			t.Errorf("%s: %d requests, the last names the prefill engines %q and the encoders %q, want %q and none", c.name, n, named, encoders, want)
		}
		if answered, read := decode.Stats().Completed-before, prefill.Stats().Completed-read; answered != 1 || read != uint64(len(want)) {
			t.Errorf("%s: %d answered and %d read, want 1 and %d", c.name, answered, read, len(want))
		}
	}

	// The prefill engine has room for one prompt. It reads the second while the first is answered, and then the third.
	var begun []*pending
	for i := range 3 {
		begun = append(begun, s.begin(ask{body: prompt(10+i, 2000, true)}))
	}
	expect.Eventually(t, "three prompts are read", func() error {
		if n, _, _ := front.last(); n != 7 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	for i, p := range begun {
		select {
		case <-p.done:
			t.Errorf("request %d of three had ended before all prompts were read", i)
		default:
		}
	}
	for _, p := range begun {
		<-p.done
		wantServed(t, "a stream", p.answer)
	}
	s.epp.waitFor(0, "weir_stock_level")
}
