package engine

// BlockChange is a change of the KV cache's reusable blocks.
type BlockChange struct {
	Kind ChangeKind
	// Hash is the block's hash, and Parent that of the block before it in the prompt; 0: none.
	Hash, Parent uint64
}

// ChangeKind is the kind of a BlockChange.
type ChangeKind uint8

// The kinds of changes. Cleared means all blocks.
const (
	Stored ChangeKind = iota
	Removed
	Cleared
)

// WatchBlocks keeps the changes of blocks from now on, for BlockChanges.
func (e *Engine) WatchBlocks() { e.cache.watched = true }

// BlockChanges returns the changes of blocks since the last call, in order. They are valid until the next call of any method.
func (e *Engine) BlockChanges() []BlockChange {
	changes := e.cache.changes
	e.cache.changes = changes[:0]
	return changes
}

// ResetCache evicts all blocks. While sequences hold some, it does nothing and returns false.
func (e *Engine) ResetCache() bool { return e.cache.reset() }
