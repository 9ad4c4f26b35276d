package extproc

import (
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/request"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func fields(pairs ...string) (m codec.Metadata) {
	for i := 0; i < len(pairs); i += 2 {
		m.String(pairs[i], pairs[i+1])
	}
	return m
}

// replyParts are the possible own parts of a reply.
func replyParts() map[string]ownPart {
	return map[string]ownPart{
		"nothing":                 {},
		"a link":                  {metadata: fields(linkKey, "1-2")},
		"a link and more":         {metadata: fields(linkKey, "1-2", "request", "3")},
		"a trace context":         {set: append(ownPart{}.set, setHeader("traceparent", traceparent))},
		"a header to remove":      {remove: []string{"x-weir-x"}},
		"a rewritten body":        {body: []byte("{}")},
		"a trace context, a link": {set: append(ownPart{}.set, setHeader("traceparent", traceparent)), metadata: fields(linkKey, "1-2")},
	}
}

// A request's own part is added to a copy. The shared reply stays unchanged and cached.
func TestOwnPartOfAReply(t *testing.T) {
	for name, test := range map[string]struct {
		k    replyKey
		want map[string]string
	}{
		"headers": {
			replyKey{destination: "10.0.0.1:8000", remove: request.ContentLengthSlot, override: true},
			map[string]string{
				"nothing":                 "headers " + dest + " -content-length " + meta + " override=NONE/NONE",
				"a link":                  "headers " + dest + " -content-length " + meta + " linked override=NONE/NONE",
				"a link and more":         "headers " + dest + " -content-length " + meta + " linked override=NONE/NONE",
				"a trace context":         "headers " + dest + " +traceparent=" + traceparent + " -content-length " + meta + " override=NONE/NONE",
				"a header to remove":      "headers " + dest + " -content-length -x-weir-x " + meta + " override=NONE/NONE",
				"a rewritten body":        "headers " + dest + " -content-length body={} " + meta + " override=NONE/NONE",
				"a trace context, a link": "headers " + dest + " +traceparent=" + traceparent + " -content-length " + meta + " linked override=NONE/NONE",
			},
		},
		"body": {
			replyKey{phase: bodyPhase},
			map[string]string{
				"nothing":                 "body",
				"a link":                  "body linked",
				"a link and more":         "body linked",
				"a trace context":         "body +traceparent=" + traceparent,
				"a header to remove":      "body -x-weir-x",
				"a rewritten body":        "body body={}",
				"a trace context, a link": "body +traceparent=" + traceparent + " linked",
			},
		},
	} {
		c := compile(new(DefaultConfig()))
		shared := c.replies.shared(test.k)
		before := proto.Clone(shared)
		for own, part := range replyParts() {
			got := c.replies.reply(test.k, part)
			if text := render(decoded(got)); text != test.want[own] {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, own, text, test.want[own])
			}
			if (got == shared) != (own == "nothing") {
				t.Errorf("%s, %s: shared %v", name, own, got == shared)
			}
		}
		if !proto.Equal(shared, before) || c.replies.shared(test.k) != shared {
			t.Errorf("%s: the shared reply has changed to %v", name, shared)
		}
	}
}

// BenchmarkReply measures the cost of a reply: shared, with a request's own metadata, and with its own header.
func BenchmarkReply(b *testing.B) {
	c := compile(new(DefaultConfig()))
	k := replyKey{destination: "10.0.0.1:8000", remove: request.ContentLengthSlot, override: true}
	var r *extprocv3.ProcessingResponse
	for _, own := range []string{"nothing", "a link", "a trace context", "a trace context, a link"} {
		part := replyParts()[own]
		b.Run(own, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r = c.replies.reply(k, part)
			}
		})
	}
	_ = r
}
