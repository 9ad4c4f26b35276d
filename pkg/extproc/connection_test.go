package extproc

import (
	"testing"
	"testing/synctest"
	"time"
)

// A request that has waited and can be preempted has one reader for both: no message of its response is lost.
func TestOneReaderForWaitingAndPreemption(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", tenants, func(c *conversation) {
		c.controller.hold, c.controller.preempt = true, make(chan struct{})
		c.controller.queued = 2 * time.Second
		c.say(chat(ofAlice()...))
		time.Sleep(2 * time.Second)
		c.controller.grant <- nil
		synctest.Wait()
		c.say(responseHeaders("200", false))
		synctest.Wait()
		const want = aliceSaid + `"wait"="2s" "bypass"=false "endpoint"="10.0.0.1:8000" "outcome"="dispatched" "status"=200`
		if line := c.theLine(); line != want {
			t.Errorf("the line is\n%s\nwant\n%s", line, want)
		}
	})
}
