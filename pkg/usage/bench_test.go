package usage

import (
	"strings"
	"testing"
)

// BenchmarkChunk measures the reading of one part of a response: an event of a streamed chat completion as a vLLM sends it,
// the same in an answer of /v1/messages, and 1 KB of a JSON response.
func BenchmarkChunk(b *testing.B) {
	for _, c := range []struct {
		name   string
		events bool
		text   string
	}{
		{"chat", true, `data: {"id":"chatcmpl-7b0d3e0d2d4f4b0e9a4a3d2c1b0a9f8e","object":"chat.completion.chunk","created":1764000000,` +
			`"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" the"},"logprobs":null,` +
			`"finish_reason":null,"token_ids":null}]}` + "\n\n"},
		{"messages", true, "event: content_block_delta\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the"}}` + "\n\n"},
		{"JSON", false, `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("some text, ", 90) + `"}}]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, part := NewReader(c.events), []byte(c.text)
			b.SetBytes(int64(len(part)))
			b.ReportAllocs()
			for b.Loop() {
				r.Write(part)
			}
		})
		if c.events {
			b.Run(c.name+", stripped", func(b *testing.B) {
				var s Strip
				part := []byte(c.text)
				b.ReportAllocs()
				for b.Loop() {
					s.Next(part, false)
				}
			})
		}
	}
}
