package modelsim

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestInjectedStatus(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		b.Inject(2, Quirk{Status: 503})
		var got []int
		for range 3 {
			status, _ := b.post(chatPath, `{"messages":[]}`)
			got = append(got, status)
		}
		if want := []int{503, 503, 200}; !slices.Equal(got, want) {
			t.Errorf("statuses %v, want %v", got, want)
		}
		if s := b.Stats(); s.Failed != 2 || s.Completed != 1 {
			t.Errorf("%+v, want 2 failed and 1 completed", s)
		}
	})
}

func TestQuirksMatch(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		b.Inject(-1, Quirk{
			Status: 529, Header: http.Header{"Retry-After": {"7"}},
			Match: func(r *http.Request) bool { return r.URL.Path == "/v1/messages" },
		})
		if status, _ := b.post(chatPath, `{"messages":[]}`); status != 200 {
			t.Errorf("status %d of a request that does not match, want 200", status)
		}
		for range 2 {
			resp, err := b.send(t.Context(), "/v1/messages", `{"messages":[]}`)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 529 || resp.Header.Get("Retry-After") != "7" {
				t.Errorf("status %d, retry-after %q, want 529 and 7", resp.StatusCode, resp.Header.Get("Retry-After"))
			}
		}
	})
}

func TestResetBeforeHeaders(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		b.Inject(1, Quirk{Reset: ResetBeforeHeaders})
		if resp, err := b.send(t.Context(), chatPath, `{"messages":[]}`); err == nil {
			resp.Body.Close()
			t.Errorf("status %d, want a broken connection", resp.StatusCode)
		}
		if status, _ := b.post(chatPath, `{"messages":[]}`); status != 200 {
			t.Errorf("the next request has status %d, want 200", status)
		}
	})
}

// A part of the answer arrives. Then the connection breaks and the slot is free.
func TestResetMidAnswer(t *testing.T) {
	for _, body := range []string{`{"messages":[],"stream":true}`, `{"messages":[]}`} {
		inBubble(t, Fixed(1, 32*time.Second), func(t *testing.T, b *bubble) {
			b.Inject(1, Quirk{Reset: ResetMidAnswer})
			resp, err := b.send(t.Context(), chatPath, body)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			if err == nil || len(data) == 0 {
				t.Errorf("%s: read %d bytes, error %v; want some and an error", body, len(data), err)
			}
			if err := b.WaitFor(t.Context(), func(s Stats) bool { return s.Running == 0 && s.Failed == 1 }); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHeaderDelay(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		b.Inject(1, Quirk{HeaderDelay: 3 * time.Second})
		start := time.Now()
		b.post(chatPath, `{"messages":[]}`)
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("took %v, want the delay of 3s and the service of 1s", took)
		}
	})
}

func TestTrailersAndNoContent(t *testing.T) {
	inBubble(t, Fixed(1, time.Second), func(t *testing.T, b *bubble) {
		for _, body := range []string{`{"messages":[]}`, `{"messages":[],"stream":true}`} {
			b.Inject(1, Quirk{Trailer: http.Header{"X-Checksum": {"abc"}}})
			resp, err := b.send(t.Context(), chatPath, body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			if got := resp.Trailer.Get("X-Checksum"); got != "abc" {
				t.Errorf("%s: trailer %q, want abc", body, got)
			}
		}
		b.Inject(1, Quirk{Status: http.StatusNoContent})
		if status, answer := b.post(chatPath, `{"messages":[]}`); status != 204 || answer != "" {
			t.Errorf("%d %q, want 204 and nothing", status, answer)
		}
	})
}

// For any cuts of the body, the answer is the same, and the pieces have the requested sizes.
func TestOddChunksKeepTheBytes(t *testing.T) {
	answers := make(map[string][]string)
	for _, sizes := range [][]int{nil, {1}, {1, 100, 3}} {
		cfg := Fixed(1, time.Second)
		cfg.Quirk = Quirk{ChunkSizes: sizes, ChunkPause: time.Millisecond}
		inBubble(t, cfg, func(t *testing.T, b *bubble) {
			start := time.Now()
			_, whole := b.post(chatPath, `{"messages":[]}`)
			took := time.Since(start)
			pieces := 0
			for left := len(whole); left > 0 && len(sizes) > 0; pieces++ {
				left -= sizes[pieces%len(sizes)]
			}
			if want := time.Second + time.Duration(max(pieces-1, 0))*time.Millisecond; took != want {
				t.Errorf("pieces of %v took %v, want a pause between each two of %d: %v", sizes, took, pieces, want)
			}
			_, stream := b.post(chatPath, `{"messages":[],"stream":true,"max_tokens":1}`)
			answers["whole"] = append(answers["whole"], whole)
			answers["stream"] = append(answers["stream"], stream[:strings.Index(stream, `"created"`)])
		})
	}
	for kind, list := range answers {
		if len(slices.Compact(list)) != 1 {
			t.Errorf("%s answers differ by their pieces: %q", kind, list)
		}
	}
}

func TestInjectRejectsNonsense(t *testing.T) {
	for _, q := range []Quirk{{Status: 99}, {ChunkSizes: []int{0}}, {Reset: 9}} {
		t.Run(fmt.Sprintf("%+v", q), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			new(Handler).Inject(1, q)
		})
	}
}
