package modelsim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// caching is a server with blocks of 4 tokens, which are 16 bytes of a prompt's JSON.
func caching() Config {
	cfg := TinyVLLM()
	cfg.PrefixCaching, cfg.PromptTokensDetails = true, true
	cfg.Engine.BlockSize, cfg.Engine.Blocks = 4, 1000
	return cfg
}

// A prompt finds the blocks of one with the same beginning, and each form of an answer has them in its usage.
func TestCachedTokensInUsage(t *testing.T) {
	shared, other := strings.Repeat("a", 160), strings.Repeat("b", 160)
	for _, c := range []struct {
		name, path, prompt, key string // prompt has a %s for its text
		cached                  keys
		stream                  bool
	}{
		{"chat", chatPath, `[{"role":"user","content":"%s"}]`, "messages", keys{"usage", "prompt_tokens_details", "cached_tokens"}, false},
		{"chat, streamed", chatPath, `[{"role":"user","content":"%s"}]`, "messages", keys{"usage", "prompt_tokens_details", "cached_tokens"}, true},
		{"completion", "/v1/completions", `"%s"`, "prompt", keys{"usage", "prompt_tokens_details", "cached_tokens"}, false},
		{"completion, streamed", "/v1/completions", `"%s"`, "prompt", keys{"usage", "prompt_tokens_details", "cached_tokens"}, true},
		{"response", "/v1/responses", `"%s"`, "input", keys{"usage", "input_tokens_details", "cached_tokens"}, false},
	} {
		inBubble(t, caching(), func(t *testing.T, b *bubble) {
			ask := func(text, more string) any {
				body := fmt.Sprintf(`{"`+c.key+`":`+c.prompt+`,"max_tokens":3`+more, text)
				if c.stream {
					body += `,"stream":true,"stream_options":{"include_usage":true}`
				}
				status, answer := b.post(c.path, body+"}")
				if status != http.StatusOK {
					t.Fatalf("%s: %d %s", c.name, status, answer)
				}
				if c.stream {
					events := strings.Split(strings.TrimSpace(answer), "\n\n")
					answer = strings.TrimPrefix(events[len(events)-2], "data: ")
				}
				return path(t, answer, c.cached...)
			}
			if got := ask(shared+"one", ""); got != nil && got != 0.0 {
				t.Errorf("%s: the first prompt: %v cached", c.name, got)
			}
			// 160 bytes are 40 tokens in 10 blocks. The API's own bytes before them move the last block's end.
			if got, ok := ask(shared+"two", "").(float64); !ok || got < 36 || got > 48 {
				t.Errorf("%s: a prompt that begins alike: %v cached, want about 40", c.name, got)
			}
			if got, ok := ask(other, "").(float64); ok && got > 8 {
				t.Errorf("%s: another prompt: %v cached", c.name, got)
			}
			if got, ok := ask(shared+"two", `,"cache_salt":"mine"`).(float64); ok && got > 0 {
				t.Errorf("%s: with a salt: %v cached", c.name, got)
			}
			if s := b.Stats(); s.CachedTokens == 0 || s.PromptTokens <= s.CachedTokens {
				t.Errorf("%s: %+v", c.name, s)
			}
		})
	}
}

// A list of prompts counts each one's hits once, for any number of answers. Token IDs are blocks too.
func TestCachedTokensOfSeveralPrompts(t *testing.T) {
	inBubble(t, caching(), func(t *testing.T, b *bubble) {
		for range 2 {
			b.post("/v1/completions", `{"prompt":[[1,2,3,4,5,6,7,8,9],[11,12,13,14,15]],"max_tokens":1}`)
		}
		_, answer := b.post("/v1/completions", `{"prompt":[[1,2,3,4,5,6,7,8,99],[11,12,13,14,15]],"max_tokens":1,"n":3}`)
		if got := path(t, answer, "usage", "prompt_tokens_details", "cached_tokens"); got != 12.0 {
			t.Errorf("%v cached, want 8 and 4: %s", got, answer)
		}
	})
}

// Without the two settings nothing is cached, and nothing is reported.
func TestNothingIsCachedUnasked(t *testing.T) {
	for _, c := range []struct {
		caching, details bool
		cached           uint64
	}{{false, true, 0}, {true, false, 28}} {
		cfg := caching()
		cfg.PrefixCaching, cfg.PromptTokensDetails = c.caching, c.details
		inBubble(t, cfg, func(t *testing.T, b *bubble) {
			for range 2 {
				_, answer := b.post("/v1/completions", `{"prompt":"`+strings.Repeat("x", 120)+`"}`)
				if !strings.Contains(answer, `"prompt_tokens_details":null`) {
					t.Errorf("%+v: %s", c, answer)
				}
			}
			if got := b.Stats().CachedTokens; got != c.cached {
				t.Errorf("%+v: %d cached", c, got)
			}
		})
	}
}

// A body beyond the limit is refused without being read.
func TestLargeBodiesAreRefused(t *testing.T) {
	cfg := caching()
	cfg.MaxBodyBytes = 100
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		status, answer := b.post(chatPath, `{"messages":[{"role":"user","content":"`+strings.Repeat("x", 100)+`"}]}`)
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(answer, "100 bytes") {
			t.Errorf("%d %s", status, answer)
		}
		if status, answer = b.post(chatPath, `{"messages":[]}`); status != http.StatusOK {
			t.Errorf("a small one: %d %s", status, answer)
		}
	})
}

// fault sends a request to the path of faults.
func (b *bubble) fault(method, body string) (status int, answer string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://memory"+FaultsPath, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	var text strings.Builder
	if err := response.Write(&text); err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, text.String()
}

// Clients make the server fail, for a number of requests or until they revoke the fault.
func TestFaultsOnDemand(t *testing.T) {
	cfg := caching()
	cfg.Faults = true
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		ask := func() int {
			status, _ := b.post(chatPath, `{"messages":[]}`)
			return status
		}
		add := func(body string) {
			if status, answer := b.fault(http.MethodPost, body); status != http.StatusNoContent {
				t.Fatalf("%s: %s", body, answer)
			}
		}
		add(`{"requests":1,"status":500}`)
		if first, second := ask(), ask(); first != 500 || second != 200 {
			t.Errorf("for one request: %d, %d", first, second)
		}
		add(`{"status":429,"header":{"Retry-After":"3"}}`)
		if first, second := ask(), ask(); first != 429 || second != 429 {
			t.Errorf("for all: %d, %d", first, second)
		}
		if _, list := b.fault(http.MethodGet, ""); !strings.Contains(list, `[{"status":429,"header":{"Retry-After":"3"}}]`) {
			t.Error(list)
		}
		b.fault(http.MethodDelete, "")
		if got := ask(); got != 200 {
			t.Errorf("deleted: %d", got)
		}
		add(`{"requests":1,"delay":"90s"}`)
		began := time.Now()
		if got := ask(); got != 200 || time.Since(began) < 90*time.Second {
			t.Errorf("held back: %d after %v", got, time.Since(began))
		}
		add(`{"requests":1,"reset":"before-headers"}`)
		if _, err := b.send(t.Context(), chatPath, `{"messages":[]}`); err == nil {
			t.Error("no reset")
		}
	})
}

// A wrong fault gives an error with all its mistakes, and has no effect.
func TestWrongFaults(t *testing.T) {
	cfg := caching()
	cfg.Faults = true
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		for body, want := range map[string]string{
			`{"status":99,"requests":-1,"delay":"-1s","reset":"x"}`: "requests: -1|status: 99|delay: \\\"-1s\\\"|reset: \\\"x\\\"",
			`{}`:            "it has no effect",
			`{"state":500}`: "state",
			`nonsense`:      "invalid",
		} {
			status, answer := b.fault(http.MethodPost, body)
			for part := range strings.SplitSeq(want, "|") {
				if status != http.StatusBadRequest || !strings.Contains(answer, part) {
					t.Errorf("%s: %d %s, want %s", body, status, answer, part)
				}
			}
		}
		if _, list := b.fault(http.MethodGet, ""); !strings.Contains(list, "[]") {
			t.Error(list)
		}
	})
	inBubble(t, caching(), func(t *testing.T, b *bubble) {
		if status, _ := b.fault(http.MethodPost, `{"status":500}`); status != http.StatusNotFound {
			t.Errorf("a server without Faults: %d", status)
		}
	})
}

// Blocks have the right tokens, and identify everything before their end.
func TestBlocksOfPrompts(t *testing.T) {
	h, err := NewHandler(caching())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	text := func(parts ...string) []uint64 {
		var raw [][]byte
		for _, part := range parts {
			raw = append(raw, []byte(part))
		}
		return h.textBlocks(1, raw...)
	}
	a := text(strings.Repeat("a", 70)) // blocks of 16 bytes
	for _, c := range []struct {
		name           string
		blocks         []uint64
		length, common int
	}{
		{"itself", a, 4, 4},
		{"in parts", text(strings.Repeat("a", 30), "", strings.Repeat("a", 40)), 4, 4},
		{"three blocks, to the byte", text(strings.Repeat("a", 48) + strings.Repeat("b", 16)), 4, 3},
		{"a byte less", text(strings.Repeat("a", 47) + strings.Repeat("b", 17)), 4, 2},
		{"another beginning", text("b" + strings.Repeat("a", 63)), 4, 0},
	} {
		common := 0
		for common < min(len(a), len(c.blocks)) && a[common] == c.blocks[common] {
			common++
		}
		if len(c.blocks) != c.length || common != c.common {
			t.Errorf("%s: %d blocks, %d in common; want %d and %d", c.name, len(c.blocks), common, c.length, c.common)
		}
	}
}
