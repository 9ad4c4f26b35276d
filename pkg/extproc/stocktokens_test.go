package extproc

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// A request's two numbers: what the queue charges, where a token of the answer costs two, and what it takes of the stock,
// where each takes one, or what the configuration says. Without an estimate, the stock takes the cost.
func TestCostAndTokensOfTheStock(t *testing.T) {
	weighted := func(cfg *Config) {
		inTokens(cfg)
		cfg.Tokens.StockWeights = estimate.Weights{Input: 3 * estimate.WeightOne, Output: estimate.WeightOne / 2}
	}
	for _, c := range []struct {
		name    string
		change  func(*Config)
		headers []string
		cost    fairqueue.Cost
		tokens  flowcontrol.Tokens
	}{
		{"by default", inTokens, nil, 100 + 2*50, 100 + 50},
		{"with weights of its own", weighted, nil, 100 + 2*50, 3*100 + 25},
		{"a cost that the gateway states", inTokens, []string{"x-cost", "7"}, 7, 0},
		{"in requests", func(*Config) {}, nil, 1, 0},
	} {
		inBubble(t, "FULL_DUPLEX/NONE", func(cfg *Config) {
			c.change(cfg)
			cfg.TrustedHeaders.Cost = "x-cost"
		}, func(conv *conversation) {
			conv.say(chat(append([]string{"x-gateway-model-name", "m"}, c.headers...)...))
			conv.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":50}`, true))
			conv.heard()
			if r := conv.controller.requests[0]; r.Cost != c.cost || r.Tokens != c.tokens {
				t.Errorf("%s: cost %d, tokens %d; want %d and %d", c.name, r.Cost, r.Tokens, c.cost, c.tokens)
			}
			conv.settled(1)
		})
	}
}
