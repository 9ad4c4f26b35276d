package kvevents

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/splitmix"
)

// pack encodes a value in msgpack: nil, bool, int, float64, string, []byte, []any, or a table as pairs.
func pack(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, 0xc0)
	case bool:
		return append(dst, 0xc3)
	case int:
		switch {
		case v >= 0 && v < 128:
			return append(dst, byte(v))
		case v < 0 && v >= -32:
			return append(dst, byte(v))
		case v < 0:
			return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
		case v < 1<<16:
			return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(v))
		}
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), uint64(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v))
	case string:
		if len(v) < 32 {
			return append(append(dst, 0xa0|byte(len(v))), v...)
		}
		return append(binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(len(v))), v...)
	case []byte:
		return append(binary.BigEndian.AppendUint16(append(dst, 0xc5), uint16(len(v))), v...)
	case []any:
		if len(v) < 16 {
			dst = append(dst, 0x90|byte(len(v)))
		} else {
			dst = binary.BigEndian.AppendUint32(append(dst, 0xdd), uint32(len(v)))
		}
		for _, one := range v {
			dst = pack(dst, one)
		}
		return dst
	case pairs:
		dst = append(dst, 0x80|byte(len(v)/2))
		for _, one := range v {
			dst = pack(dst, one)
		}
		return dst
	}
	panic("no encoding")
}

type pairs []any

func batchOf(events ...any) []byte { return pack(nil, []any{1.5, events, 0}) }

func (c *contents) take(raw []byte) (totals, error) {
	return c.batch(bufio.NewReaderSize(bytes.NewReader(raw), 16), uint64(len(raw)))
}

func list3(values ...any) []any { return values }

// Events count in each of the forms in which engines write them.
func TestBatch(t *testing.T) {
	digest := bytes.Repeat([]byte{7}, 32)
	long := make([]any, 5000)
	for i := range long {
		long[i] = i * i
	}
	for name, c := range map[string]struct {
		event  any
		sum    totals
		blocks int // that are known, of one that is known before
	}{
		"vLLM, stored": {pairs{
			"type", "BlockStored", "block_hashes", list3(11, 12, 13), "parent_block_hash", nil, "token_ids", long[:48],
			"block_size", 16, "lora_id", nil, "medium", "GPU", "lora_name", nil, "extra_keys", list3(nil, list3("salt")), "group_idx", 0,
		}, totals{stored: 3}, 4},
		"the type last":         {pairs{"block_size", 16, "medium", "gpu", "block_hashes", list3(11), "type", "BlockStored"}, totals{stored: 1}, 2},
		"vLLM, removed":         {pairs{"type", "BlockRemoved", "block_hashes", list3(1), "medium", "GPU", "group_idx", 0}, totals{removed: 1}, 0},
		"cleared":               {pairs{"type", "AllBlocksCleared"}, totals{cleared: true}, 0},
		"in the CPU's memory":   {pairs{"type", "BlockStored", "block_hashes", list3(11), "block_size", 16, "medium", "CPU"}, totals{}, 1},
		"of the second group":   {pairs{"type", "BlockStored", "block_hashes", list3(11), "block_size", 16, "group_idx", 1}, totals{}, 1},
		"elsewhere":             {pairs{"type", "BlockRemoved", "block_hashes", list3(1), "locality", "REMOTE"}, totals{}, 1},
		"digests":               {pairs{"type", "BlockStored", "block_hashes", list3(digest, string(digest[:8])), "block_size", 16}, totals{stored: 2}, 3},
		"negative hashes":       {pairs{"type", "BlockStored", "block_hashes", list3(-1, -12345678901), "block_size", 16}, totals{stored: 2}, 3},
		"SGLang, stored":        {list3("BlockStored", list3(11, 12), -5, long[:32], 16, nil), totals{stored: 2}, 3},
		"an older vLLM, stored": {list3("BlockStored", list3(11), nil, long[:16], 16, nil, "GPU", nil), totals{stored: 1}, 2},
		"SGLang, removed":       {list3("BlockRemoved", list3(1)), totals{removed: 1}, 0},
		"SGLang, to the host":   {list3("BlockRemoved", list3(1), "CPU_PINNED"), totals{}, 1},
		"SGLang, cleared":       {list3("AllBlocksCleared"), totals{cleared: true}, 0},
		"an event of later":     {pairs{"type", "BlockMoved", "block_hashes", list3(1), "deep", list3(list3(pairs{1, list3(true, 2.5)}))}, totals{}, 1},
		"a list of later":       {list3("BlockMoved", list3(list3(1)), pairs{"a", nil}), totals{}, 1},
		"many":                  {list3("BlockStored", long, nil, nil, 16), totals{stored: 5000}, -1},
	} {
		var known contents
		known.store([]uint64{splitmix.Mix(1)}, 16)
		sum, err := known.take(batchOf(c.event))
		if err != nil || sum != c.sum || c.blocks >= 0 && len(known.known) != c.blocks {
			t.Errorf("%s: %+v, %d known, %v", name, sum, len(known.known), err)
		}
		if c.blocks < 0 && (len(known.known) < samples/3 || len(known.known) > samples) {
			t.Errorf("%s: %d known", name, len(known.known))
		}
	}
}

// A batch without a rank, and one with more than that, are batches.
func TestBatchWithoutRank(t *testing.T) {
	for _, rest := range [][]any{nil, {0}, {nil, "more", list3(1)}} {
		var c contents
		raw := pack(nil, append([]any{1.5, list3(list3("AllBlocksCleared"))}, rest...))
		if sum, err := c.take(raw); err != nil || !sum.cleared {
			t.Errorf("%v: %+v, %v", rest, sum, err)
		}
	}
}

// Nonsense is an error that says what is wrong.
func TestBadBatches(t *testing.T) {
	stored := func(more ...any) []byte { return batchOf(append(pairs{"type", "BlockStored"}, more...)) }
	for want, raw := range map[string][]byte{
		"must be a list of a time":   pack(nil, "hello"),
		"a list of a time":           pack(nil, list3(1.5)),
		"events of a batch":          pack(nil, list3(1.5, 3)),
		"neither a table nor":        batchOf(7),
		"has no type":                batchOf(list3()),
		"block_size must":            stored("block_size", 0),
		"block_size must be from 1 ": stored("block_size", -16),
		"must be from 1 to 65536":    stored("block_size", 1<<20),
		"block_size must be":         stored("block_size", "16"),
		"has no block_size":          stored("block_hashes", list3(1)),
		"block_hashes must be":       stored("block_hashes", 12),
		"a block's hash must":        stored("block_hashes", list3(2.5)),
		"at most 64 bytes":           stored("block_hashes", list3(strings.Repeat("x", 100))),
		"bytes follow a batch":       append(batchOf(), 1),
		"ends within":                batchOf(list3("AllBlocksCleared"))[:12],
		"within a value":             {0xdd, 0xff, 0xff, 0xff, 0xff},
		"batch has room for":         append([]byte{0x92, 0x01, 0x91, 0x92, 0xab}, "BlockStored\xdd\xff\xff\xff\xff"...),
		"0xc1":                       {0x92, 0xc1},
		"a batch ends":               append([]byte{0x92, 0x01, 0x91, 0x92, 0xa1, 'x'}, bytes.Repeat([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, 100)...),
		"a batch ends within a":      {0x92, 0xdb, 0xff, 0xff, 0xff, 0xff},
	} {
		var c contents
		if _, err := c.take(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// A message costs no memory, whatever is in it: a million hashes, equal or made to be kept, deep lists, long texts.
func TestBatchesCostNoMemory(t *testing.T) {
	var chosen []any
	for i := range 200_000 {
		chosen = append(chosen, i) // the worst for an unmixed sample
	}
	same := make([]any, 1_000_000)
	for i := range same {
		same[i] = 5
	}
	deep := append([]byte{0x92, 0x01, 0x91}, bytes.Repeat([]byte{0x91}, 1<<20)...)
	for name, raw := range map[string][]byte{
		"small numbers": batchOf(list3("BlockStored", chosen, nil, nil, 16)),
		"one block":     batchOf(list3("BlockStored", same, nil, same, 16)),
		"deep":          append(deep, 0x01),
		"long":          batchOf(list3("BlockMoved", strings.Repeat("x", 1<<22))),
	} {
		var c contents
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.take(raw)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 600<<10 || len(c.known) > samples {
			t.Errorf("%s: %d bytes, %d blocks, %v", name, used, len(c.known), err)
		}
	}
}

func FuzzBatch(f *testing.F) {
	f.Add(batchOf(pairs{"type", "BlockStored", "block_hashes", list3(1, -2, []byte("abc")), "block_size", 16, "medium", "GPU"}))
	f.Add(batchOf(list3("BlockRemoved", list3(1)), list3("AllBlocksCleared")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var c contents
		_, _ = c.take(raw)
		if len(c.known) > samples || c.size() < 0 || c.size() > mostTokens {
			t.Errorf("%d blocks, a size of %d", len(c.known), c.size())
		}
	})
}
