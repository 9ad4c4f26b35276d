package body

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// Sizes of blocks.
const (
	blockBytes      = 1 << 10 // of the first manyBlocks blocks
	largeBlockBytes = 8 << 10 // of the blocks after them
	manyBlocks      = 512
	// mostBlocks is how many blocks are made at most; the rest of the prompt has none.
	mostBlocks = 4096
	// shortestMedia is the length in bytes from which a string of base64 counts as a medium.
	shortestMedia = 1 << 10
)

// Blocks are the keys of a prompt's blocks: each is a hash of everything from the prompt's beginning to the block's end.
// Prompts that begin alike have equal keys up to the first difference.
type Blocks struct {
	Keys []uint64
	// Ends are the ends of the blocks in bytes of text, of Bytes in all. Media are hashed, and no text.
	Ends  []uint32
	Bytes uint32
}

// BlockSize returns the length of a prompt's n-th block, in bytes, where nothing ends it early. The first block is block 0;
// a prompt has no block whose size is 0, nor any after it.
func BlockSize(n int) int {
	switch {
	case n < manyBlocks:
		return blockBytes
	case n < mostBlocks:
		return largeBlockBytes
	default:
		return 0
	}
}

// span is a part of a body.
type span struct{ start, end int }

// shownKeys are the parts of a prompt in the order in which templates show them.
var shownKeys = [...]promptKey{tools, system, instructions, messages, prompt, input}

// Blocks returns the blocks of the prompt of b, which must be the body that f was read from. Requests with different seeds
// have no key in common, nor have those with different values of cache_salt.
//
// A block has 1 KiB of raw JSON, and 8 KiB after the first 512; it also ends with each message, and with the tools, the
// system prompt and the instructions. A last part that is no whole block has no key, since more may follow it.
func (f *Fields) Blocks(b []byte, seed uint64) Blocks {
	w := blockWriter{a: mix(seed ^ 0xa0761d6478bd642f), c: mix(seed ^ 0xe7037ed1a0b428db), state: mix(seed)}
	if s := f.cacheSalt; s.end > 0 {
		w.state = w.hash(w.state, b[s.start:s.end])
	}
	for _, k := range shownKeys {
		s := f.spans[k]
		if s.end == 0 {
			continue
		}
		w.state = mix(w.state + uint64(k) + 1)
		switch raw := b[s.start:s.end]; {
		case raw[0] == '[' && (k == messages || k == input || k == prompt):
			w.list(raw)
		case k == prompt || k == input:
			w.write(inside(raw))
		default:
			w.write(raw)
			w.end()
		}
	}
	w.blocks.Bytes = w.text
	return w.blocks
}

// SessionKey returns a hash of prompt_cache_key, and whether the body has one that says anything.
func (f *Fields) SessionKey(b []byte, seed uint64) (uint64, bool) {
	s := f.cacheKey
	if s.end-s.start <= len(`""`) || b[s.start] != '"' {
		return 0, false
	}
	return HashText(string(b[s.start:s.end]), seed), true
}

// HashText hashes a text, alike in every process that has the seed.
func HashText(text string, seed uint64) uint64 {
	w := blockWriter{a: mix(seed ^ 0xa0761d6478bd642f), c: mix(seed ^ 0xe7037ed1a0b428db)}
	return mix(w.hash(mix(seed), []byte(text)))
}

// inside returns a string of JSON without its quotes.
func inside(raw []byte) []byte {
	if raw[0] == '"' {
		return raw[1 : len(raw)-1]
	}
	return raw
}

// blockWriter makes blocks of what is written to it.
type blockWriter struct {
	blocks Blocks
	a, c   uint64 // secrets, without which no collision can be built
	state  uint64 // hash of everything so far
	filled int    // bytes in the block that is being made
	text   uint32
}

// list writes a list of messages, or of prompts, whose JSON is valid.
func (w *blockWriter) list(raw []byte) {
	for i := next(raw, 1); raw[i] != ']'; {
		end := i
		if raw[i] == '{' {
			end += w.message(raw[i:])
			w.end()
		} else {
			end = skip(raw, i)
			w.write(raw[i:end])
		}
		if i = next(raw, end); raw[i] == ',' {
			i = next(raw, i+1)
		}
	}
}

// message writes the values of the message with which raw begins: its role, its content, and all others but those that only
// name something. It returns its length.
func (w *blockWriter) message(raw []byte) (length int) {
	var role, content span
	var others []span
	i := next(raw, 1)
	for raw[i] != '}' {
		keyEnd := skip(raw, i)
		start := next(raw, next(raw, keyEnd)+1)
		end := skip(raw, start)
		switch string(raw[i+1 : keyEnd-1]) {
		case "role":
			role = span{start, end}
		case "content":
			content = span{start, end}
		case "id", "name", "tool_call_id", "call_id", "status":
		default:
			others = append(others, span{start, end})
		}
		if i = next(raw, end); raw[i] == ',' {
			i = next(raw, i+1)
		}
	}
	for _, s := range [...]span{role, content} {
		if s.end > 0 {
			w.value(raw[s.start:s.end])
		}
	}
	for _, s := range others {
		w.value(raw[s.start:s.end])
	}
	return i + 1
}

// value writes a value, of which strings that are media are hashed whole.
func (w *blockWriter) value(raw []byte) {
	if len(raw) < shortestMedia {
		w.write(raw)
		return
	}
	from := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := len(raw)
		if i > 0 {
			end = skipString(raw, i)
		}
		if s := raw[i+1 : end-1]; len(s) >= shortestMedia && isMediumText(s) {
			w.write(raw[from:i])
			w.state = w.hash(w.state, s)
			from = end
		}
		i = end - 1
	}
	w.write(raw[from:])
}

// isMediumText reports whether a long string is a data URL, or nothing but base64.
func isMediumText(s []byte) bool { return string(s[:5]) == "data:" || isBase64(s) }

// write writes text.
func (w *blockWriter) write(p []byte) {
	for len(p) > 0 && len(w.blocks.Keys) < mostBlocks {
		size := BlockSize(len(w.blocks.Keys))
		n := min(size-w.filled, len(p))
		w.state = w.hash(w.state, p[:n])
		w.count(n)
		if w.filled += n; w.filled == size {
			w.end()
		}
		p = p[n:]
	}
	w.count(len(p))
}

func (w *blockWriter) count(n int) { w.text = uint32(min(uint64(w.text)+uint64(n), math.MaxUint32)) }

// end ends the block.
func (w *blockWriter) end() {
	w.filled = 0
	if len(w.blocks.Keys) == mostBlocks {
		return
	}
	if w.blocks.Keys == nil {
		w.blocks.Keys, w.blocks.Ends = make([]uint64, 0, 16), make([]uint32, 0, 16)
	}
	w.state = mix(w.state)
	w.blocks.Keys, w.blocks.Ends = append(w.blocks.Keys, w.state), append(w.blocks.Ends, w.text)
}

// hash returns the hash of p after a state: multiply and fold, in two lanes of 16 bytes at a time.
func (w *blockWriter) hash(state uint64, p []byte) uint64 {
	state ^= uint64(len(p)) * 0x9e3779b97f4a7c15
	for other := state ^ w.c; len(p) >= 32; p = p[32:] {
		state = fold(binary.LittleEndian.Uint64(p)^w.a, binary.LittleEndian.Uint64(p[8:])^w.c^state) ^ bits.RotateLeft64(state, 23)
		other = fold(binary.LittleEndian.Uint64(p[16:])^w.c, binary.LittleEndian.Uint64(p[24:])^w.a^other) ^ bits.RotateLeft64(other, 29)
		if len(p) < 64 {
			state += mix(other)
		}
	}
	for len(p) >= 16 {
		state = fold(binary.LittleEndian.Uint64(p)^w.a, binary.LittleEndian.Uint64(p[8:])^w.c^state) ^ bits.RotateLeft64(state, 23)
		p = p[16:]
	}
	var last [16]byte
	copy(last[:], p)
	return fold(binary.LittleEndian.Uint64(last[:])^w.a, binary.LittleEndian.Uint64(last[8:])^w.c^state) ^ bits.RotateLeft64(state, 23)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mix spreads the bits of a hash (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// next returns the index of the next byte from i on that is no blank.
func next(raw []byte, i int) int {
	for raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r' {
		i++
	}
	return i
}

// skip returns the index behind the value, of valid JSON, that begins at i.
func skip(raw []byte, i int) int {
	for open := 0; ; {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
		case '{', '[':
			open++
			i++
		case '}', ']':
			open--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue // of an open list or object
		default:
			for i < len(raw) && raw[i] != ',' && raw[i] != '}' && raw[i] != ']' && raw[i] > ' ' {
				i++
			}
		}
		if open == 0 {
			return i
		}
	}
}

// skipString returns the index behind the string whose opening quote is at i.
func skipString(raw []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(raw[i:], '"')
		escapes := 0
		for raw[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}
