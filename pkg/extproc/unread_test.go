package extproc

import (
	"testing"
	"testing/synctest"
)

// The first token of a stream ends the reading of its prompt, if the gate or a returned response body shows it. Headers
// and comments are no tokens.
func TestFirstTokenEndsTheReading(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", inTokens, func(c *conversation) {
		c.controller.unread = true
		c.say(chat("x-gateway-model-name", "m"))
		c.heard()
		c.say(requestBodyOf(`{"model":"m","prompt":"words"}`, true))
		c.heard()
		lease := c.controller.leases[0]
		c.say(responseHeaders("200", false, sseHeaders...))
		c.say(responseBodyOf(": wait\n\n", false))
		if lease.firstTokens != 0 {
			t.Error("a comment is taken for a token")
		}
		c.say(responseBodyOf("data: {}\n\n", false))
		c.say(responseBodyOf("data: [DONE]\n\n", true))
		c.end()
		if n := c.logged.has("WARNING: the first tokens"); lease.firstTokens != 1 || n != 0 {
			t.Errorf("%d first tokens, %d warnings", lease.firstTokens, n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.controller.unread = true
		b.seeGate()
		main, id := b.granted()
		g := b.openGate()
		g.arrives(id, sse())
		lease := b.controller.leases[0]
		g.say(responseBodyOf(": wait\n\n", false))
		if lease.firstTokens != 0 {
			t.Error("a comment is taken for a token")
		}
		g.say(responseBodyOf("data: {}\n\n", false))
		<-g.done
		if lease.firstTokens != 1 {
			t.Errorf("the gate has reported %d first tokens", lease.firstTokens)
		}
		main.say(sse())
		main.end()
		if n := b.logged.has("WARNING: the first tokens"); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
}

// If nothing shows the first tokens of streams, Weir says so once. Answers that are not streams, or that failed, do not
// cause it.
func TestUnseenFirstTokensAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		answered := func(status, contentType string) {
			c, _ := b.granted()
			c.say(responseHeaders(status, false, "content-type", contentType))
			c.end()
		}
		answered("200", "text/event-stream")
		if n := b.logged.has("WARNING: the first tokens"); n != 0 {
			t.Errorf("%d warnings without a rule", n)
		}
		b.controller.unread = true
		answered("200", "application/json")
		answered("500", "text/event-stream")
		if n := b.logged.has("WARNING: the first tokens"); n != 0 {
			t.Errorf("%d warnings for no streams", n)
		}
		answered("200", "text/event-stream")
		answered("200", "text/event-stream")
		if n := b.logged.has("WARNING: the first tokens"); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}
