package extproc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

func tellingState(c *Config) { c.Responses.QueueState = true }

// Unless the configuration allows it, no client gets the state, and the header is still removed.
func TestQueueStateIsOffByDefault(t *testing.T) {
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.controller.waiting, c.controller.queued = 7, time.Second
		c.say(chat(request.QueueStateHeader, "1"))
		c.say(responseHeaders("200", false))
		if got := c.heard(); got != "headers "+dest+" -x-weir-queue-state "+meta+"; response-headers" {
			t.Error(got)
		}
	})
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.controller.reject = flowcontrol.ErrShed
		c.say(chat(request.QueueStateHeader, "1"))
		if headers := c.rejection(); headers[queuedHeader] != "" || headers[queueLengthHeader] != "" {
			t.Errorf("%v", headers)
		}
	})
}

// Only a client that asks for the queue's state gets it with the response. The header does not reach the model server.
func TestQueueState(t *testing.T) {
	for value, asked := range map[string]bool{"1": true, "true": true, "0": false, "": false, "yes": false} {
		inBubble(t, "NONE/NONE", tellingState, func(c *conversation) {
			c.controller.waiting, c.controller.queued = 7, 1234567*time.Microsecond
			c.say(chat(request.QueueStateHeader, value))
			if got := c.heard(); got != "headers "+dest+" -x-weir-queue-state "+meta {
				t.Errorf("%q: %s", value, got)
			}
			c.say(responseHeaders("200", false))
			want := "response-headers"
			if asked {
				want += " +x-weir-queued-ms=1234 +x-weir-queue-length=7"
			}
			if got := c.heard(); got != want {
				t.Errorf("%q: got %s, want %s", value, got, want)
			}
		})
	}
}

// Response headers have Envoy's limits for answers, 100 headers and 60 KiB, whatever the limits of requests are.
func TestQueueStateNeedsRoom(t *testing.T) {
	for _, requests := range []request.Limits{{MaxHeaders: 5, MaxHeaderBytes: 500}, {MaxHeaders: 198, MaxHeaderBytes: 97_792}} {
		for _, test := range []struct {
			headers, bytes int
			told           bool
		}{{98, 10_000, true}, {99, 10_000, false}, {100, 10_000, false}, {10, 60_928, true}, {10, 60_929, false}} {
			configure := func(c *Config) {
				c.Responses.QueueState = true
				c.Limits.MaxHeaders, c.Limits.MaxHeaderBytes = requests.MaxHeaders, requests.MaxHeaderBytes
			}
			inBubble(t, "NONE/NONE", configure, func(c *conversation) {
				c.say(chat(request.QueueStateHeader, "1"))
				c.heard()
				c.say(responseOf(test.headers, test.bytes))
				if got := strings.Contains(c.heard(), queueLengthHeader); got != test.told {
					t.Errorf("requests may have %d headers, the response has %d and %d bytes: told %v",
						requests.MaxHeaders, test.headers, test.bytes, got)
				}
			})
		}
	}
}

// responseOf returns response headers of this number and size.
func responseOf(headers, bytes int) *extprocv3.ProcessingRequest {
	size := len(":status") + len("200")
	var pairs []string
	for i := range headers - 2 {
		name := fmt.Sprintf("x-%d", i)
		pairs = append(pairs, name, "")
		size += len(name)
	}
	pairs = append(pairs, "x-big", strings.Repeat("v", bytes-size-len("x-big")))
	return responseHeaders("200", false, pairs...)
}

func TestQueueStateOfARejection(t *testing.T) {
	inBubble(t, "NONE/NONE", tellingState, func(c *conversation) {
		c.controller.waiting, c.controller.hold = 3, true
		c.say(chat(request.QueueStateHeader, "1"))
		c.heard()
		time.Sleep(2 * time.Second)
		c.controller.grant <- flowcontrol.ErrExpiredTTL
		headers := c.rejection()
		if headers[queuedHeader] != "2000" || headers[queueLengthHeader] != "3" || headers["retry-after"] != "2" {
			t.Errorf("%v", headers)
		}
	})
}

// rejection returns the headers of the last ImmediateResponse since the previous call.
func (c *conversation) rejection() map[string]string {
	headers := map[string]string{}
	for _, h := range c.stream.take()[0].GetImmediateResponse().GetHeaders().GetSetHeaders() {
		headers[h.GetHeader().GetKey()] = headerValue(h.GetHeader())
	}
	return headers
}

func TestDefectUploadCountedAsWaiting(t *testing.T) {
	for _, test := range []struct {
		name   string
		waits  bool
		body   string
		queued string
	}{
		{"rejected after a wait", true, `{"model":"m"}`, "2000"},
		{"rejected at once", false, `{"model":"m"}`, "0"},
		{"never offered", false, `{`, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "BUFFERED/NONE", tellingState, func(c *conversation) {
				c.controller.hold, c.controller.reject = test.waits, flowcontrol.ErrShed
				c.say(chat(request.QueueStateHeader, "1"))
				c.heard()
				time.Sleep(10 * time.Second) // the upload
				c.say(requestBodyOf(test.body, true))
				if test.waits {
					c.heard()
					time.Sleep(2 * time.Second)
					c.controller.grant <- flowcontrol.ErrExpiredTTL
				}
				if got := c.rejection()[queuedHeader]; got != test.queued {
					t.Errorf("waited %q ms, want %s", got, test.queued)
				}
			})
		})
	}
}
