package prefix

import (
	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/invalid"
)

// DefaultTokens is the size that a KV cache is taken to have while it is not known.
const DefaultTokens = 1_000_000

// maxTokens is the largest KV cache that counts. With it an endpoint has an eighth of the default MaxNodes, however much
// its metrics claim.
const maxTokens = 1 << 26

// tokensPerNode is the number of tokens of a block, except the few large ones.
const tokensPerNode = body.BlockBytes / body.BytesPerToken

// minNodes is the least that an endpoint's limit is, as far as its own cache goes.
const minNodes = 64

// Config bounds an index.
type Config struct {
	// MaxNodes is the most blocks of all endpoints together, at least 1. Each takes some 50 bytes.
	MaxNodes int
}

// DefaultConfig returns a bound of 4 million blocks, some 200 MB: 500 endpoints with 1 million KV tokens each.
func DefaultConfig() Config { return Config{MaxNodes: 4 << 20} }

// Validate reports every problem at once, as invalid.Problems.
func (c Config) Validate() error {
	var ps invalid.Problems
	invalid.Within(&ps, invalid.At("MaxNodes"), c.MaxNodes, 1, 1<<30)
	return ps.Err()
}
