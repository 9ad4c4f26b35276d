package estimate

import "testing"

// The length that a client expects counts instead of the prediction, from the floor up to what the request allows, for each
// of its answers; and it teaches nothing.
func TestExpectedOutput(t *testing.T) {
	e := New(DefaultConfig())
	request := func(expected, most, answers int64) *Request {
		return &Request{Flow: "f", Tokens: 100, Text: Unknown, Length: Unknown, Answers: answers, MaxOutput: most, Expected: expected}
	}
	for _, c := range []struct{ expected, most, answers, want int64 }{
		{0, Unknown, 1, 1000},
		{300, Unknown, 1, 300},
		{300, Unknown, 4, 1200},
		{300, 50, 1, 50},
		{1, Unknown, 1, 16},
		{300, 0, 1, 0},
		{1 << 50, Unknown, 1, MaxTokens},
	} {
		if got := e.Estimate(request(c.expected, c.most, c.answers)).Output; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	for range 100 {
		e.Learn(request(5, Unknown, 1), Usage{Input: 100, Output: 4000}, 0)
	}
	if got := e.Estimate(request(0, Unknown, 1)).Output; got < 4000 || got > 4500 {
		t.Errorf("learned %d", got)
	}
}
