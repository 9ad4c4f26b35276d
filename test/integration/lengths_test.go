package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Engines of one model may accept prompts of different lengths. A prompt too long for one goes to the other. A prompt
// too long for both is rejected at once, with both numbers.
func TestPromptsGoWhereTheyFit(t *testing.T) {
	t.Parallel()
	short, long := batching(16), batching(16)
	short.MaxModelLen, long.MaxModelLen = 512, 8192
	s := start(t, setup{models: []modelsim.Config{short, long}, config: "profile: recommended"})
	prompt := func(bytes int) ask {
		return ask{path: "/v1/completions", body: fmt.Sprintf(`{"model":"tiny","prompt":%q,"max_tokens":8}`, strings.Repeat("word ", bytes/5))}
	}
	// In turns each engine would get every other request.
	expect.Eventually(t, "the lengths are known", func() error {
		for range 10 {
			if a := s.send(prompt(8000)); a.status != http.StatusOK {
				return fmt.Errorf("status %d: %s", a.status, a.body)
			}
		}
		return nil
	})
	refused := s.models[0].Stats().Started
	for range 10 {
		wantServed(t, "a prompt that fits one engine", s.send(prompt(8000)))
	}
	if n := s.models[0].Stats().Started - refused; n != 0 {
		t.Errorf("%d prompts went to the engine that they do not fit", n)
	}
	for range 10 {
		wantServed(t, "a prompt that fits both", s.send(prompt(400)))
	}
	if n := s.models[0].Stats().Started - refused; n == 0 {
		t.Error("the engine of short prompts gets none")
	}
	a := s.send(prompt(400_000))
	if a.status != http.StatusBadRequest || a.reason() != "bad-request" || !strings.Contains(a.body, "12500 tokens or more, and no model server takes more than 8192") ||
		a.header.Get("x-should-retry") != "false" {
		t.Errorf("a prompt that fits none: %d, %v: %s", a.status, a.header, a.body)
	}
}
