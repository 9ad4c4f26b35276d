package extproc

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-epp/weir/pkg/request"
)

// An inbox is bounded in messages and in bytes, and all of them in total. An empty inbox takes one message whatever the
// others hold.
func TestInboxBounds(t *testing.T) {
	var memory bodyMemory
	count := newInbox(&memory, 1<<30)
	for i := range inboxMessages + 1 {
		if got := count.put(responseTrailers()); got != (i < inboxMessages) {
			t.Fatalf("message %d: %v", i, got)
		}
	}
	large := requestBodyOf(strings.Repeat("x", inboxBytes/2+1), false)
	size := newInbox(&memory, 1<<30)
	if !size.put(large) || size.put(large) {
		t.Error("bytes are not bounded")
	}
	total := newInbox(&memory, 10)
	if !total.put(large) || total.put(requestBodyOf("x", false)) {
		t.Error("the total is not bounded, or an empty inbox is blocked")
	}
	if size.get() == nil || !size.put(large) {
		t.Error("no room after a message was taken")
	}
	for _, b := range []*inbox{count, size, total} {
		b.close()
		b.put(large)
	}
	if held := memory.bytes(); held != 0 {
		t.Errorf("%d bytes held at the end", held)
	}
}

// A body that arrives while its request waits in the header phase goes on after the grant, complete and in order.
func TestBodyThatComesWhileQueued(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", func(c *Config) { c.RequestBody = request.BodyNever }, func(c *conversation) {
		c.controller.hold = true
		c.say(chat())
		var want strings.Builder
		for part := range strings.SplitSeq("abcdefghijklmnopqrstuvwxyz", "") {
			c.say(requestBodyOf(part, part == "z"))
			want.WriteString("; body chunk=" + part)
		}
		if got := c.heard(); got != "timeout=35s" {
			t.Errorf("got %s", got)
		}
		if held := c.server.memory.bytes(); held < 26 || held > 26*64 { // with the spare memory behind each
			t.Errorf("%d bytes held", held)
		}
		c.controller.grant <- nil
		if got := c.heard(); got != "headers "+dest+" "+meta+want.String()+" end" {
			t.Errorf("got %s", got)
		}
		c.settled(1)
	})
}

// An Envoy without named modes gets answers that work in every mode but FULL_DUPLEX_STREAMED.
func TestWithoutProtocolConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, nil).open("NONE/NONE")
		c.first = false // so that the first message does not name the modes
		c.say(chat())
		c.say(requestBodyOf(`{"model":"m"}`, true))
		if got := c.heard(); got != "headers "+dest+" "+meta+"; body" {
			t.Errorf("got %s", got)
		}
		c.settled(1)
		if c.logged.has("does not tell its body modes") != 1 {
			t.Error("no warning")
		}
	})
}

// A gateway of GKE does not name its mode either, and the configuration states it: the body goes back whole.
func TestAssumedFullDuplex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, func(cfg *Config) { cfg.AssumeFullDuplex = true }).open("FULL_DUPLEX/FULL_DUPLEX")
		c.first = false
		c.say(chat())
		c.say(requestBodyOf(`{"model":"m"}`, true))
		if got := c.heard(); got != "headers "+dest+" "+meta+`; body chunk={"model":"m"} end` {
			t.Errorf("got %s", got)
		}
		c.say(responseHeaders("200", false))
		c.say(responseBodyOf("x", true))
		if got := c.heard(); got != "response-headers; response-body chunk=x end" {
			t.Errorf("got %s", got)
		}
		c.settled(1)
		if c.logged.has("does not tell its body modes") != 0 {
			t.Error("a warning about a mode that is known")
		}
	})
}
