package prefix

import (
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/invalid"
)

// DefaultTokens is the assumed size of a KV cache of unknown size.
const DefaultTokens = 1_000_000

// maxTokens caps the size of a KV cache. So an endpoint has at most an eighth of the default MaxNodes, whatever its
// metrics claim.
const maxTokens = 1 << 26

// tokensPerNode is the number of tokens of a block, except the few large ones.
const tokensPerNode = body.BlockBytes / body.BytesPerToken

// minNodes is the least limit of an endpoint by its own cache.
const minNodes = 64

// Config bounds an index.
type Config struct {
	// MaxNodes is the most blocks of all endpoints together, at least 1. A block takes some 50 bytes.
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
