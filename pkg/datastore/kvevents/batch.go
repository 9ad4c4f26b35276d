package kvevents

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/splitmix"
)

// Types of events.
const (
	blockStored      = "BlockStored"
	blockRemoved     = "BlockRemoved"
	allBlocksCleared = "AllBlocksCleared"
)

// fields are the names of an event's values in the order of a list, by type, as in SGLang, and in vLLM until 0.29.
var fields = map[string][]string{
	blockStored:  {"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"},
	blockRemoved: {"block_hashes", "medium"},
}

// mostBlock is the most tokens of a valid block.
const mostBlock = 1 << 16

// mostHash is the longest hash of a block, in bytes.
const mostHash = 64

// event has the relevant parts of one event.
type event struct {
	kind   string
	hashes []uint64 // mixed, of the sample only
	blocks int      // all
	size   int64
	aside  bool // it concerns other memory than the accelerator's, or another group than the first
}

// totals are the sums of a batch.
type totals struct {
	stored, removed int // blocks
	cleared         bool
}

// batch reads the batch in the next bytes of r, and applies its events.
func (c *contents) batch(r *bufio.Reader, bytes uint64) (sum totals, err error) {
	d := items{r, bytes}
	top, err := d.head()
	if err != nil {
		return sum, err
	}
	if top.kind != list || top.n < 2 {
		return sum, errors.New("kvevents: a batch must be a list of a time and events")
	}
	if err := d.skipNext(); err != nil { // the time
		return sum, err
	}
	events, err := d.head()
	if err != nil {
		return sum, err
	}
	if events.kind != list {
		return sum, errors.New("kvevents: the events of a batch must be a list")
	}
	for range events.n {
		e, err := c.event(&d)
		if err != nil {
			return sum, err
		}
		c.apply(&e, &sum)
	}
	for range top.n - 2 {
		if err := d.skipNext(); err != nil {
			return sum, err
		}
	}
	if d.left > 0 {
		return sum, fmt.Errorf("kvevents: %d bytes follow a batch", d.left)
	}
	return sum, nil
}

// apply takes an event.
func (c *contents) apply(e *event, sum *totals) {
	switch {
	case e.kind == allBlocksCleared:
		c.clear()
		sum.cleared = true
	case e.aside:
	case e.kind == blockStored:
		c.store(e.hashes, e.size)
		sum.stored += e.blocks
	case e.kind == blockRemoved:
		c.remove(e.hashes)
		sum.removed += e.blocks
	}
}

// event reads an event: a table with its type, or a list that begins with it.
func (c *contents) event(d *items) (e event, err error) {
	top, err := d.head()
	if err != nil {
		return e, err
	}
	switch top.kind {
	case table:
		for range top.n {
			key, err := d.nextWord()
			if err != nil {
				return e, err
			}
			if err := c.field(d, key, &e); err != nil {
				return e, err
			}
		}
	case list:
		if top.n == 0 {
			return e, errors.New("kvevents: an event has no type")
		}
		if e.kind, err = d.nextWord(); err != nil {
			return e, err
		}
		names := fields[e.kind]
		for i := range top.n - 1 {
			name := ""
			if i < uint64(len(names)) {
				name = names[i]
			}
			if err := c.field(d, name, &e); err != nil {
				return e, err
			}
		}
	default:
		return e, errors.New("kvevents: an event is neither a table nor a list")
	}
	if e.kind == blockStored && e.blocks > 0 && e.size == 0 {
		return e, fmt.Errorf("kvevents: %s has no block_size", blockStored)
	}
	return e, nil
}

// field reads the value of an event's field.
func (c *contents) field(d *items, name string, e *event) error {
	i, err := d.head()
	if err != nil {
		return err
	}
	switch name {
	case "type":
		e.kind, err = d.word(i)
		return err
	case "block_hashes":
		return c.hashes(d, i, e)
	case "block_size":
		if i.kind != number || i.n < 1 || i.n > mostBlock {
			return fmt.Errorf("kvevents: block_size must be from 1 to %d", mostBlock)
		}
		e.size = int64(i.n)
		return nil
	case "group_idx":
		e.aside = e.aside || i.kind == number && i.n != 0
	case "medium":
		if i.kind == text {
			word, err := d.word(i)
			e.aside = e.aside || !strings.EqualFold(word, "gpu")
			return err
		}
	case "locality":
		if i.kind == text {
			word, err := d.word(i)
			e.aside = e.aside || strings.EqualFold(word, "remote")
			return err
		}
	}
	return d.skip(i)
}

// hashes reads a list of hashes. It keeps only those of the sample, so a bounded number.
func (c *contents) hashes(d *items, i item, e *event) error {
	if i.kind != list || i.n > d.left {
		return errors.New("kvevents: block_hashes must be a list that its batch has room for")
	}
	e.blocks = int(i.n)
	for range i.n {
		one, err := d.head()
		if err != nil {
			return err
		}
		hash := one.n
		switch {
		case one.kind == text && one.n <= mostHash:
			if hash, err = d.hash(one.n); err != nil {
				return err
			}
		case one.kind != number:
			return fmt.Errorf("kvevents: a block's hash must be a number, or at most %d bytes", mostHash)
		}
		if hash = splitmix.Mix(hash); !c.sampled(hash) {
			continue
		}
		if e.hashes = append(e.hashes, hash); len(e.hashes) == 2*samples {
			slices.Sort(e.hashes)
			e.hashes = slices.Compact(e.hashes)
			for len(e.hashes) > samples { // they differ, so it ends
				c.thin()
				e.hashes = slices.DeleteFunc(e.hashes, func(h uint64) bool { return !c.sampled(h) })
			}
		}
	}
	return nil
}

// hash reads bytes as a number (FNV-1a).
func (d *items) hash(bytes uint64) (uint64, error) {
	hash := uint64(14695981039346656037)
	for range bytes {
		b, err := d.bytes(1)
		if err != nil {
			return 0, err
		}
		hash = (hash ^ b) * 1099511628211
	}
	return hash, nil
}

// skipNext skips a value.
func (d *items) skipNext() error {
	i, err := d.head()
	if err != nil {
		return err
	}
	return d.skip(i)
}

// nextWord reads a value as a word.
func (d *items) nextWord() (string, error) {
	i, err := d.head()
	if err != nil {
		return "", err
	}
	return d.word(i)
}
