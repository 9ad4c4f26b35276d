package extproc

import (
	"fmt"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// conversationBody is a chat with messages of 4 KB, at least bytes long in total.
func conversationBody(bytes int) string {
	var s strings.Builder
	s.WriteString(`{"model":"m","messages":[`)
	for i := 0; s.Len() < bytes; i++ {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"role":"user","content":"%s"}`, strings.Repeat(fmt.Sprintf("word %d, ", i), 400))
	}
	s.WriteString(`]}`)
	return s.String()
}

// BenchmarkAffinity220KB measures requests with a body of 220 KB over a real connection, without and with the blocks of their
// prompts: at most 1.25 times as much.
func BenchmarkAffinity220KB(b *testing.B) {
	for _, mode := range []request.AffinityMode{request.AffinityOff, request.AffinityPrefix} {
		b.Run(string(mode), func(b *testing.B) {
			bench := newBench(b, func(c *Config) { c.Affinity.Mode = mode })
			bench.server.controller = quickController{}
			message, text := chat(envoyHeaders[:len(envoyHeaders)-2]...), conversationBody(220<<10)
			message.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: requestModes[request.Buffered]}
			benchmarkWire(b, bench.server, message, requestBodyOf(text, true), responseHeaders("200", false))
		})
	}
}
