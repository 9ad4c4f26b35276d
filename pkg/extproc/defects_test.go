package extproc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// Each test is named after a defect of another endpoint picker, which Weir must not have. The defects of reading usage
// are in usage_test.go. Other packages have liveness, the mean that hides a full endpoint, and a backlog that rejects
// others.

// inBubble runs one conversation.
func inBubble(t *testing.T, mode string, change func(*Config), talk func(c *conversation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, change).open(mode)
		talk(c)
		c.end()
	})
}

func TestDefectStatusReadWithoutItsColon(t *testing.T) {
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.say(chat())
		c.say(responseHeaders("503", false, "status", "200"))
		c.settled(1)
		if got := c.controller.leases[0].completed[0].Status; got != 503 {
			t.Errorf("status %d", got)
		}
	})
}

func TestDefectRequestTrailersIgnored(t *testing.T) {
	for _, mode := range []string{"NONE/NONE", "STREAMED/NONE", "BUFFERED/NONE", "BUFFERED_PARTIAL/NONE", "FULL_DUPLEX/NONE"} {
		inBubble(t, mode, func(c *Config) { c.RequestBody = request.BodyAlways }, func(c *conversation) {
			c.say(chat("x-gateway-model-name", "m")) // with trailers, BUFFERED_PARTIAL cannot mark a body as whole
			c.say(requestBodyOf(`{"model":"m"}`, false))
			c.say(requestTrailers())
			if got := c.heard(); !strings.HasSuffix(got, "trailers") {
				t.Errorf("%s: the trailers wait for ever: %s", mode, got)
			}
		})
	}
}

func TestDefectHeaderOnlyRequestsIgnoreSubsetAndAdmission(t *testing.T) {
	models := func() *extprocv3.ProcessingRequest {
		m := requestHeaders(true, ":method", "GET", ":path", "/v1/models")
		m.MetadataContext = subsetMetadata(structpb.NewStringValue("10.0.0.7:8000"))
		return m
	}
	inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
		c.say(models())
		if got := c.heard(); got != "headers "+dest+" "+meta+" override=NONE/NONE" {
			t.Errorf("got %s", got)
		}
		if got := c.picker.subset.Members; !slices.Equal(got, []string{"10.0.0.7:8000"}) || c.controller.passedOn != 1 {
			t.Errorf("subset %v, %d passed on", got, c.controller.passedOn)
		}
		c.settled(1) // its lease counts as stock
	})
	inBubble(t, "BUFFERED/NONE", func(c *Config) { c.PassOn = request.PassOnQueue }, func(c *conversation) {
		c.say(models())
		c.heard()
		if c.controller.passedOn != 0 || len(c.controller.requests) != 1 {
			t.Error("not queued")
		}
	})
}

func TestDefectIPv6WithoutBrackets(t *testing.T) {
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.picker.address, c.picker.fallbacks = "[2001:db8::1]:8000", []string{"10.0.0.2:8000", "[::1]:9"}
		c.say(chat())
		const list = "[2001:db8::1]:8000,10.0.0.2:8000,[::1]:9"
		if got := c.heard(); got != "headers +x-gateway-destination-endpoint="+list+" meta="+list {
			t.Errorf("got %s", got)
		}
	})
}

func TestDefectSubsetFormsIgnored(t *testing.T) {
	text := structpb.NewStringValue
	list := func(v ...*structpb.Value) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: v})
	}
	tests := []struct {
		name  string
		value *structpb.Value
		want  []string // nil: refused at once
	}{
		{"a list", list(text("10.0.0.1:8000"), text("[::1]:8000")), []string{"10.0.0.1:8000", "[::1]:8000"}},
		{"a string", text("10.0.0.1:8000,10.0.0.2:8001"), []string{"10.0.0.1:8000", "10.0.0.2:8001"}},
		{"without ports", text(" 10.0.0.1 , ::1"), []string{"10.0.0.1", "::1"}},
		{"a list of strings with commas", list(text("a:1,b:2"), text("")), []string{"a:1", "b:2"}},
		{"empty", text(""), nil},
		{"blank", text(" , "), nil},
		{"an empty list", list(), nil},
		{"a number", structpb.NewNumberValue(7), nil},
		{"null", structpb.NewNullValue(), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "NONE/NONE", nil, func(c *conversation) {
				m := chat()
				m.MetadataContext = subsetMetadata(test.value)
				c.say(m)
				got := c.heard()
				if test.want == nil {
					if got != "immediate 503 no-endpoint" {
						t.Errorf("got %s", got)
					}
					return
				}
				if !slices.Equal(c.picker.subset.Members, test.want) || !c.picker.subset.Set {
					t.Errorf("subset %q", c.picker.subset.Members)
				}
			})
		})
	}
}

func TestDefectSubsetOfStrangersRoutesToEveryPod(t *testing.T) {
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.picker.err = fmt.Errorf("the endpoint subset names no member of the pool")
		c.say(chat())
		if got := c.heard(); got != "immediate 503 no-endpoint" {
			t.Errorf("got %s", got)
		}
		c.settled(1)
	})
}

// Headers are never copied back, so nothing can collapse them.
func TestDefectDuplicateHeadersCollapsed(t *testing.T) {
	inBubble(t, "NONE/NONE", func(c *Config) { c.FlowKey = []string{"header:x-team"} }, func(c *conversation) {
		c.say(chat("x-team", "a", "accept", "x", "accept", "y"))
		if got := c.heard(); got != "headers "+dest+" "+meta {
			t.Errorf("got %s", got)
		}
		if got := c.controller.requests[0].Flow; got != "a" {
			t.Errorf("flow %q", got)
		}
	})
}

// Weir's own headers, also forged ones, never reach the model server, even if the request is not placed.
func TestDefectControlHeadersReachTheUpstream(t *testing.T) {
	forged := []string{
		"x-gateway-destination-endpoint", "169.254.169.254:80", "x-gateway-destination-endpoint-served", "6.6.6.6:1",
		"x-gateway-destination-endpoint-subset", "6.6.6.6", "x-gateway-model-name", "m", "x-llm-d-inference-fairness-id", "a",
		"x-gateway-inference-fairness-id", "b", "x-llm-d-inference-objective", "c", "x-gateway-inference-objective", "d",
		"x-llm-d-slo-ttft-ms", "100", "x-weir-reason", "e", "x-weir-anything", "f",
		"x-prefiller-host-port", "169.254.169.254:80", "x-encoder-hosts-ports", "169.254.169.254:80", "x-data-parallel-host-port", "169.254.169.254:80",
	}
	for _, placed := range []bool{true, false} {
		for _, mode := range []string{"NONE/NONE", "STREAMED/NONE", "BUFFERED/NONE", "BUFFERED_PARTIAL/NONE", "FULL_DUPLEX/NONE"} {
			inBubble(t, mode, func(c *Config) { c.RequestBody = request.BodyAlways }, func(c *conversation) {
				if !placed {
					c.picker.address = ""
				}
				c.say(chat(forged...))
				c.say(requestBodyOf(`{"model":"m"}`, true))
				got := c.heard()
				for i := 0; i < len(forged); i += 2 {
					removed := strings.Contains(got, "-"+forged[i]+" ") || strings.HasSuffix(got, "-"+forged[i]) || strings.Contains(got, "-"+forged[i]+";")
					overwritten := strings.Contains(got, "+"+forged[i]+"=")
					if !removed && !overwritten {
						t.Errorf("%s, placed %v: %s goes on: %s", mode, placed, forged[i], got)
					}
				}
				if strings.Contains(got, "169.254") {
					t.Errorf("the forged destination is named: %s", got)
				}
			})
		}
	}
}

func TestDefectRequestsWithOneRequestIDCollide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		first, second := b.open("NONE/NONE"), b.open("NONE/NONE")
		for _, c := range []*conversation{first, second} {
			c.say(chat("x-request-id", "same"))
			c.heard()
		}
		first.end()
		if len(b.controller.leases) != 2 || len(b.controller.leases[0].completed) != 1 || len(b.controller.leases[1].completed) != 0 {
			t.Error("the end of one request is not the end of the other")
		}
		second.settled(2)
	})
}

func TestDefectNoBodyLimit(t *testing.T) {
	small := func(c *Config) { c.Limits.MaxBodyBytes, c.Limits.MaxBodyBytesTotal = 100, 150 }
	inBubble(t, "FULL_DUPLEX/NONE", small, func(c *conversation) {
		c.say(chat())
		c.say(requestBodyOf(strings.Repeat("x", 60), false))
		c.say(requestBodyOf(strings.Repeat("x", 60), false))
		if got := c.heard(); got != "immediate 413 too-large" {
			t.Errorf("got %s", got)
		}
		c.settled(1)
	})
	// The limit of all bodies is not this request's mistake, so the client may retry.
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, small)
		first, second := b.open("FULL_DUPLEX/NONE"), b.open("FULL_DUPLEX/NONE")
		for _, c := range []*conversation{first, second} {
			c.say(chat())
			c.say(requestBodyOf(strings.Repeat("x", 90), false))
			synctest.Wait()
		}
		if got := second.heard(); got != "immediate 503 no-memory" {
			t.Errorf("got %s", got)
		}
		first.end()
		second.settled(2)
	})
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.say(chat("x-long", strings.Repeat("x", 70_000)))
		if got := c.heard(); got != "immediate 413 too-large" {
			t.Errorf("got %s", got)
		}
	})
}

// The response's headers pass unchanged.
func TestDefectTransferEncodingCopiedBack(t *testing.T) {
	for _, mode := range []string{"NONE/NONE", "FULL_DUPLEX/FULL_DUPLEX"} {
		inBubble(t, mode, nil, func(c *conversation) {
			c.say(requestHeaders(true, ":method", "GET", ":path", "/v1/models"))
			c.heard()
			c.say(responseHeaders("200", false, "transfer-encoding", "chunked", "content-type", "text/event-stream"))
			c.say(responseBodyOf("data: 1\n\n", false))
			if got := c.heard(); !strings.HasPrefix(got, "response-headers; response-body") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestDefectFairnessIDsUnbounded(t *testing.T) {
	key := func(c *Config) { c.FlowKey = []string{"header:x-llm-d-inference-fairness-id"} }
	for _, id := range []string{strings.Repeat("x", 257), "\xff\xfe"} {
		inBubble(t, "NONE/NONE", key, func(c *conversation) {
			c.say(chat("x-llm-d-inference-fairness-id", id))
			c.heard()
			if got := c.controller.requests[0].Flow; !strings.HasPrefix(got, "sha256:") || len(got) != 71 {
				t.Errorf("flow %q", got)
			}
		})
	}
}

// The model's name outlives its body, and no account counts it.
func TestDefectModelNamesUnbounded(t *testing.T) {
	const refused = `{"error":{"message":"The field \"model\" is longer than 1024 bytes.",` +
		`"type":"invalid_request_error","code":"bad-request","param":"model"}}`
	talk := func(mode, inHeader, inBody string) (answered *extprocv3.ProcessingResponse) {
		inBubble(t, mode, nil, func(c *conversation) {
			headers := chat()
			if inHeader != "" {
				headers = chat("x-gateway-model-name", inHeader)
			}
			c.say(headers)
			synctest.Wait()
			if inBody != "" {
				c.say(requestBodyOf(`{"model":"`+inBody+`"}`, true))
			}
			sent := c.stream.take()
			answered = sent[len(sent)-1]
			c.settled(1)
			for _, model := range c.controller.refusedModels {
				if len(model) > request.MaxModelBytes {
					t.Errorf("a model of %d bytes is counted by its name", len(model))
				}
			}
		})
		return answered
	}
	longest := strings.Repeat("m", request.MaxModelBytes)
	for _, test := range []struct{ mode, inHeader, inBody string }{
		{"BUFFERED/NONE", "", longest},
		{"FULL_DUPLEX/NONE", "", longest},
		{"FULL_DUPLEX/NONE", "short", longest},
		{"NONE/NONE", longest, ""},
	} {
		if got := talk(test.mode, test.inHeader, test.inBody); isImmediate(got) {
			t.Errorf("%s: the longest name is refused: %s", test.mode, render(got))
		}
		if test.inBody == "" {
			test.inHeader += "m"
		} else {
			test.inBody += "m"
		}
		got := talk(test.mode, test.inHeader, test.inBody).GetImmediateResponse()
		if got.GetStatus().GetCode() != 400 || string(got.GetBody()) != refused {
			t.Errorf("%s: %v %s", test.mode, got.GetStatus().GetCode(), got.GetBody())
		}
	}
}

func TestDefectPlainTextErrorsWithoutRetryAfter(t *testing.T) {
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.controller.reject = flowcontrol.ErrShed
		c.say(chat())
		synctest.Wait()
		m := c.stream.sent[0].GetImmediateResponse()
		headers := map[string]string{}
		for _, h := range m.GetHeaders().GetSetHeaders() {
			headers[h.GetHeader().GetKey()] = headerValue(h.GetHeader())
			if h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
				t.Errorf("%s is appended", h.GetHeader().GetKey())
			}
		}
		for name, want := range map[string]string{
			"content-type": "application/json", "retry-after": "2", "retry-after-ms": "1500", "x-weir-reason": "shed",
			"x-llm-d-request-dropped-reason": "shed",
		} {
			if headers[name] != want {
				t.Errorf("%s: %q, want %q", name, headers[name], want)
			}
		}
		const want = `{"error":{"message":"The service is busy and this request may be shed. Please retry later.","type":"server_error","code":"shed","param":null}}`
		if string(m.GetBody()) != want {
			t.Errorf("got %s", m.GetBody())
		}
	})
}
