package extproc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-epp/weir/pkg/request"
)

// A prompt too long for every engine is rejected before it waits, with both numbers, and marked as not retryable.
func TestPromptThatIsTooLong(t *testing.T) {
	for _, test := range []struct {
		prompt, rejected string
	}{
		{`"` + strings.Repeat("word ", 10_000) + `"`, "has 1562 tokens or more, and no model server takes more than 1000."},
		{"[" + strings.Repeat("7,", 1000) + "7]", "has 1001 tokens or more, and no model server takes more than 1000."},
		{`"` + strings.Repeat("word ", 1_000) + `"`, ""}, // counted by the engine
		{`["` + strings.Repeat("word ", 10_000) + `","b"]`, ""},
	} {
		inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
			c.picker.most = 1000
			c.say(requestHeaders(false, ":method", "POST", ":path", "/v1/completions"))
			c.say(requestBodyOf(`{"model":"m","prompt":`+test.prompt+`}`, true))
			synctest.Wait()
			if n := len(c.controller.leases); (n == 0) != (test.rejected != "") {
				t.Errorf("%.20s: %d leases", test.prompt, n)
			}
			if test.rejected == "" {
				return
			}
			got := c.heardBody()
			if !strings.Contains(got, test.rejected) || !strings.Contains(got, `"code":"bad-request"`) {
				t.Errorf("%.20s: got %s", test.prompt, got)
			}
			c.settled(1)
		})
	}
}

// The length of a request is its prompt and the longest answer that it allows.
func TestLengthOfARequest(t *testing.T) {
	for text, want := range map[string]Length{
		`{"model":"m","prompt":"` + strings.Repeat("a", 400) + `","max_tokens":50}`: {12, 150},
		`{"model":"m","prompt":[1,2,3],"max_tokens":50}`:                            {3, 53},
		`{"model":"m","prompt":[1,2,3]}`:                                            {3, 3},
		`{"model":"m","prompt":"` + strings.Repeat("a", 400) + `","n":2}`:           {},
		`{"model":"m","prompt":["a","b"]}`:                                          {},
	} {
		inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
			c.picker.confined = &request.Subset{Set: true, Members: []string{"10.0.0.1:8000"}}
			c.say(requestHeaders(false, ":method", "POST", ":path", "/v1/completions"))
			c.say(requestBodyOf(text, true))
			synctest.Wait()
			c.picker.mu.Lock()
			defer c.picker.mu.Unlock()
			if c.picker.length != want || want != (Length{}) && fmt.Sprint(c.picker.subset.Members) != "[10.0.0.1:8000]" {
				t.Errorf("%.40s: %+v, subset %v", text, c.picker.length, c.picker.subset)
			}
		})
	}
}
