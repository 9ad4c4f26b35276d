package modelsim

import (
	"encoding/json"

	"github.com/weir-epp/weir/internal/splitmix"
)

// textBlocks returns the hashes of a prompt's blocks for the engine's cache, from the parts of its JSON, split as
// tokens are counted; nil without a cache. Prompts with different salts share no blocks.
func (h *Handler) textBlocks(salt uint64, parts ...[]byte) []uint64 {
	if !h.cfg.PrefixCaching {
		return nil
	}
	size := h.cfg.Engine.BlockSize * h.cfg.BytesPerToken
	var blocks []uint64
	hash, n := salt, 0
	for _, part := range parts {
		for _, c := range part {
			hash = hashByte(hash, c)
			if n++; n == size {
				blocks = append(blocks, splitmix.Mix(hash))
				n = 0
			}
		}
	}
	return blocks
}

// idBlocks returns the hashes of the blocks of a prompt in token IDs.
func (h *Handler) idBlocks(salt uint64, ids []json.RawMessage) []uint64 {
	if !h.cfg.PrefixCaching {
		return nil
	}
	var blocks []uint64
	hash := salt
	for i, id := range ids {
		for _, c := range id {
			hash = hashByte(hash, c)
		}
		hash = hashByte(hash, ',')
		if (i+1)%h.cfg.Engine.BlockSize == 0 {
			blocks = append(blocks, splitmix.Mix(hash))
		}
	}
	return blocks
}

// salt returns the hash of a request's cache_salt.
func (o object) salt() uint64 {
	hash := uint64(14695981039346656037)
	for _, c := range o["cache_salt"] {
		hash = hashByte(hash, c)
	}
	return hash
}

// hashByte is a step of FNV-1a: each hash stands for everything before it.
func hashByte(hash uint64, c byte) uint64 { return (hash ^ uint64(c)) * 1099511628211 }
