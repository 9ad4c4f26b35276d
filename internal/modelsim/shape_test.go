package modelsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// path looks a value up in decoded JSON: object keys and list indices.
func path(t *testing.T, text string, keys ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("not JSON: %v: %s", err, text)
	}
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[key]
		case int:
			list, _ := value.([]any)
			if key >= len(list) {
				return nil
			}
			value = list[key]
		}
	}
	return value
}

// keys is a path into JSON.
type keys []any

// The usage, text and finish reason of each API's JSON answer.
func TestWholeAnswers(t *testing.T) {
	// Token counts: a quarter of the prompt's JSON bytes, rounded up.
	for _, c := range []struct {
		name, path, body      string
		in, out, text, reason keys
		wantIn, wantOut       float64
		wantReason            string
	}{
		{
			name: "chat", path: chatPath, body: `{"messages":[{"role":"user","content":"hi"}],"max_tokens":3}`,
			in: keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"},
			text: keys{"choices", 0, "message", "content"}, reason: keys{"choices", 0, "finish_reason"},
			wantIn: 8, wantOut: 3, wantReason: "length",
		},
		{
			name: "the new limit goes before the old", path: chatPath,
			body: `{"messages":[],"max_tokens":3,"max_completion_tokens":5}`,
			in:   keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"},
			text: keys{"choices", 0, "message", "content"}, reason: keys{"choices", 0, "finish_reason"},
			wantIn: 1, wantOut: 5, wantReason: "length",
		},
		{
			name: "completions", path: "/v1/completions", body: `{"prompt":"hello","max_tokens":3}`,
			in: keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"},
			text: keys{"choices", 0, "text"}, reason: keys{"choices", 0, "finish_reason"},
			wantIn: 2, wantOut: 3, wantReason: "length",
		},
		{
			name: "two prompts, two answers each", path: "/v1/completions",
			body: `{"prompt":["hello","hello"],"max_tokens":3,"n":2}`,
			in:   keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"},
			text: keys{"choices", 3, "text"}, reason: keys{"choices", 3, "finish_reason"},
			wantIn: 4, wantOut: 12, wantReason: "length",
		},
		{
			name: "token IDs", path: "/v1/completions", body: `{"prompt":[5,6,7],"max_tokens":1}`,
			in: keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"},
			text: keys{"choices", 0, "text"}, reason: keys{"choices", 0, "finish_reason"},
			wantIn: 3, wantOut: 1, wantReason: "length",
		},
		{
			name: "messages", path: "/v1/messages", body: `{"messages":[],"max_tokens":3}`,
			in: keys{"usage", "input_tokens"}, out: keys{"usage", "output_tokens"},
			text: keys{"content", 0, "text"}, reason: keys{"stop_reason"},
			wantIn: 1, wantOut: 3, wantReason: "max_tokens",
		},
		{
			name: "responses", path: "/v1/responses", body: `{"input":"hi","max_output_tokens":3}`,
			in: keys{"usage", "input_tokens"}, out: keys{"usage", "output_tokens"},
			text: keys{"output", 0, "content", 0, "text"}, reason: keys{"status"},
			wantIn: 1, wantOut: 3, wantReason: "completed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, Fixed(8, time.Second), func(t *testing.T, b *bubble) {
				status, answer := b.post(c.path, c.body)
				if status != http.StatusOK {
					t.Fatalf("status %d: %s", status, answer)
				}
				if got := path(t, answer, c.in...); got != c.wantIn {
					t.Errorf("%v prompt tokens, want %v", got, c.wantIn)
				}
				if got := path(t, answer, c.out...); got != c.wantOut {
					t.Errorf("%v output tokens, want %v", got, c.wantOut)
				}
				if got := path(t, answer, c.reason...); got != c.wantReason {
					t.Errorf("ended for %v, want %v", got, c.wantReason)
				}
				if got := path(t, answer, "model"); got != "tiny" {
					t.Errorf("model %v, want tiny", got)
				}
				if text, _ := path(t, answer, c.text...).(string); text == "" {
					t.Errorf("no text in %s", answer)
				}
			})
		})
	}
}

// The events of each API's stream, in order, and the usage among them.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		kinds            string
		usageAt          int // index from the end of the event with the usage; 0 if there is none
		in, out          keys
	}{
		{
			name: "chat without usage", path: chatPath, body: `{"messages":[],"max_tokens":2,"stream":true}`,
			kinds: "chat.completion.chunk chat.completion.chunk chat.completion.chunk chat.completion.chunk [DONE]",
		},
		{
			name: "chat with usage", path: chatPath,
			body:  `{"messages":[],"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`,
			kinds: "chat.completion.chunk chat.completion.chunk chat.completion.chunk chat.completion.chunk chat.completion.chunk [DONE]",
			in:    keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"}, usageAt: 2,
		},
		{
			name: "completions with usage", path: "/v1/completions",
			body:  `{"prompt":"","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`,
			kinds: "text_completion text_completion text_completion text_completion [DONE]",
			in:    keys{"usage", "prompt_tokens"}, out: keys{"usage", "completion_tokens"}, usageAt: 2,
		},
		{
			name: "messages", path: "/v1/messages", body: `{"messages":[],"max_tokens":2,"stream":true}`,
			kinds: "message_start content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop",
			in:    keys{"usage", "input_tokens"}, out: keys{"usage", "output_tokens"}, usageAt: 2,
		},
		{
			name: "responses", path: "/v1/responses", body: `{"input":"","max_output_tokens":2,"stream":true}`,
			kinds: "response.created response.in_progress response.output_item.added response.content_part.added " +
				"response.output_text.delta response.output_text.delta response.output_text.done " +
				"response.content_part.done response.output_item.done response.completed",
			in: keys{"response", "usage", "input_tokens"}, out: keys{"response", "usage", "output_tokens"}, usageAt: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, Fixed(8, time.Second), func(t *testing.T, b *bubble) {
				resp, err := b.send(t.Context(), c.path, c.body)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
					t.Errorf("content type %q, want an event stream", got)
				}
				events := readEvents(t, resp.Body, time.Now())
				var kinds []string
				for i, event := range events {
					kinds = append(kinds, kindOf(t, event.data))
					if n, ok := numberOf(event.data); ok && n != i {
						t.Errorf("event %d has the number %d", i, n)
					}
				}
				if got := strings.Join(kinds, " "); got != c.kinds {
					t.Errorf("events\n%s\nwant\n%s", got, c.kinds)
				}
				if c.usageAt == 0 {
					if strings.Contains(fmt.Sprint(events), "usage") {
						t.Error("unrequested usage")
					}
					return
				}
				last := events[len(events)-c.usageAt].data
				if in, out := path(t, last, c.in...), path(t, last, c.out...); in != 1.0 || out != 2.0 {
					t.Errorf("usage %v in, %v out, want 1 and 2", in, out)
				}
				if choices, ok := path(t, last, "choices").([]any); ok && len(choices) != 0 {
					t.Errorf("choices %v beside the usage, want none", choices)
				}
			})
		})
	}
}

// kindOf returns the name of an event in its API.
func kindOf(t *testing.T, data string) string {
	t.Helper()
	if data == "[DONE]" {
		return data
	}
	for _, key := range []string{"type", "object"} {
		if kind, ok := path(t, data, key).(string); ok {
			return kind
		}
	}
	return "?"
}

// numberOf returns the sequence number of an event, if it has one.
func numberOf(data string) (int, bool) {
	var event struct {
		Number *int `json:"sequence_number"`
	}
	if json.Unmarshal([]byte(data), &event) != nil || event.Number == nil {
		return 0, false
	}
	return *event.Number, true
}

// The status and the shape of each API's errors.
func TestBadRequests(t *testing.T) {
	cfg := Fixed(8, time.Second)
	cfg.MaxModelLen = 100
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		for _, c := range []struct {
			path, body string
			status     int
			kind       string
		}{
			{chatPath, `{"model":"other","messages":[]}`, 404, "NotFoundError"},
			{"/v1/messages", `{"model":"other","messages":[]}`, 404, "NotFoundError"},
			{chatPath, `{"model":"tiny","model":"other","messages":[]}`, 404, "NotFoundError"}, // the last one wins
			{chatPath, `{"model":"tiny","messages":[]`, 400, "BadRequestError"},
			{chatPath, `null`, 400, "BadRequestError"},
			{chatPath, ``, 400, "BadRequestError"},
			{chatPath, `{}`, 400, "BadRequestError"},
			{chatPath, `{"messages":[],"max_tokens":0}`, 400, "BadRequestError"},
			{chatPath, `{"messages":[],"max_tokens":"three"}`, 400, "BadRequestError"},
			{chatPath, `{"messages":[],"max_tokens":100}`, 400, "BadRequestError"}, // 101 with the prompt
			{chatPath, `{"messages":[],"n":0}`, 400, "BadRequestError"},
			{"/v1/completions", `{"prompt":[]}`, 400, "BadRequestError"},
			{"/v1/messages", `{`, 400, "BadRequestError"},
		} {
			status, answer := b.post(c.path, c.body)
			if kind := path(t, answer, "error", "type"); status != c.status || kind != c.kind {
				t.Errorf("%s %s: %d %v, want %d %s", c.path, c.body, status, kind, c.status, c.kind)
			}
			if kind := path(t, answer, "type"); (kind == "error") != (c.path == "/v1/messages") {
				t.Errorf("%s %s: not the API's error shape: %s", c.path, c.body, answer)
			}
		}
		if s := b.Stats(); s.Failed != s.Started || s.MaxLoad != 0 {
			t.Errorf("%+v, want all failed and no work done", s)
		}
	})
}

// Unusual requests that are served nevertheless.
func TestAccepted(t *testing.T) {
	inBubble(t, Fixed(8, time.Second), func(t *testing.T, b *bubble) {
		for _, body := range []string{
			`{"messages":[]}`,
			`{"model":null,"messages":[]}`,
			`{"model":"other","model":"tiny","messages":[]}`,
			`{"model":"tiny","Model":"other","messages":[]}`, // keys are exact
			`{"messages":[],"max_tokens":3,"max_tokens":4,"unknown":{}}`,
		} {
			if status, answer := b.post(chatPath, body); status != http.StatusOK {
				t.Errorf("%s: %d %s", body, status, answer)
			}
		}
	})
}

// The same seed gives the same answers. Another seed, or another request, gives others.
func TestSeedFixesTheTexts(t *testing.T) {
	texts := func(seed uint64) (list []string) {
		cfg := Fixed(8, time.Second)
		cfg.Seed, cfg.EarlyStop = seed, 0.2
		inBubble(t, cfg, func(_ *testing.T, b *bubble) {
			for range 5 {
				_, answer := b.post(chatPath, `{"messages":[]}`)
				list = append(list, answer)
			}
		})
		return list
	}
	first := strings.Join(texts(1), "\n")
	if again := strings.Join(texts(1), "\n"); again != first {
		t.Errorf("one seed, two answers:\n%s\n%s", first, again)
	}
	if other := strings.Join(texts(2), "\n"); other == first {
		t.Error("another seed gives the same answers")
	}
	if !strings.Contains(first, `"finish_reason":"stop"`) {
		t.Errorf("no answer ended early: %s", first)
	}
	if list := texts(1); list[0] == list[1] {
		t.Error("two requests got the same answer")
	}
}
