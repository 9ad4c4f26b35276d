package engine

// BlockChange is a change of the blocks that the KV cache can find again.
type BlockChange struct {
	Kind ChangeKind
	// Hash is the block's, and Parent that of the block before it in the prompt; 0: none.
	Hash, Parent uint64
}

// ChangeKind is the kind of a BlockChange.
type ChangeKind uint8

// The kinds of changes. Cleared is of all blocks.
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

// ResetCache evicts all blocks; it reports false, and does nothing, while sequences hold some.
func (e *Engine) ResetCache() bool { return e.cache.reset() }
