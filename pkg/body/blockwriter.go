package body

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/weir-epp/weir/internal/splitmix"
)

// blockWriter makes blocks of the bytes written to it.
type blockWriter struct {
	body   []byte
	media  []span // in the body, ascending
	blocks Blocks
	a, c   uint64 // secrets, so that nobody can build a collision
	state  uint64 // hash of everything so far
	filled int    // bytes in the present block
	text   uint32
}

func newBlockWriter(seed uint64) blockWriter {
	return blockWriter{
		a: splitmix.Mix(seed ^ 0xa0761d6478bd642f), c: splitmix.Mix(seed ^ 0xe7037ed1a0b428db), state: splitmix.Mix(seed),
	}
}

// betweenMessages cannot be part of a JSON value.
var betweenMessages = []byte{0}

// list writes a list of messages, or of prompts, in valid JSON.
func (w *blockWriter) list(s span) {
	for i := next(w.body, s.start+1); w.body[i] != ']'; {
		end := skip(w.body, i)
		if w.body[i] == '{' {
			w.write(betweenMessages)
			w.message(i)
		} else {
			w.part(span{i, end})
		}
		if i = next(w.body, end); w.body[i] == ',' {
			i = next(w.body, i+1)
		}
	}
}

// message writes the values of the message at i: its role, its content, and then the others. It leaves out values that
// templates do not show: IDs and states, which a client may generate for each request, and the speaker's name. It
// includes a tool's name.
func (w *blockWriter) message(i int) {
	var role, content, name span
	var others []span
	for i = next(w.body, i+1); w.body[i] != '}'; {
		keyEnd := skip(w.body, i)
		value := span{start: next(w.body, next(w.body, keyEnd)+1)}
		value.end = skip(w.body, value.start)
		switch string(w.body[i+1 : keyEnd-1]) {
		case "role":
			role = value
		case "content":
			content = value
		case "name":
			name = value
		case "id", "tool_call_id", "call_id", "status":
		default:
			others = append(others, value)
		}
		if i = next(w.body, value.end); w.body[i] == ',' {
			i = next(w.body, i+1)
		}
	}
	switch string(w.body[role.start:role.end]) {
	case `"user"`, `"system"`, `"assistant"`, `"developer"`:
		name = span{}
	}
	w.part(role)
	w.part(name)
	w.part(content)
	for _, s := range others {
		w.part(s)
	}
}

// part writes a part of the body. Media in it are hashed whole.
func (w *blockWriter) part(s span) {
	first, _ := slices.BinarySearchFunc(w.media, s.start, func(m span, at int) int { return cmp.Compare(m.start, at) })
	for _, m := range w.media[first:] {
		if m.start >= s.end {
			break
		}
		w.write(w.body[s.start:m.start])
		w.state = w.hash(w.state, w.body[m.start:m.end])
		s.start = m.end
	}
	w.write(w.body[s.start:s.end])
}

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
	if w.blocks.Keys == nil {
		w.blocks.Keys, w.blocks.Ends = make([]uint64, 0, 16), make([]uint32, 0, 16)
	}
	w.state = splitmix.Mix(w.state)
	w.blocks.Keys, w.blocks.Ends = append(w.blocks.Keys, w.state), append(w.blocks.Ends, w.text)
}

// hash returns the hash of p after a state: multiply and fold, in two lanes of 16 bytes at a time.
func (w *blockWriter) hash(state uint64, p []byte) uint64 {
	state ^= uint64(len(p)) * 0x9e3779b97f4a7c15
	for other := state ^ w.c; len(p) >= 32; p = p[32:] {
		state = fold(binary.LittleEndian.Uint64(p)^w.a, binary.LittleEndian.Uint64(p[8:])^w.c^state) ^ bits.RotateLeft64(state, 23)
		other = fold(binary.LittleEndian.Uint64(p[16:])^w.c, binary.LittleEndian.Uint64(p[24:])^w.a^other) ^ bits.RotateLeft64(other, 29)
		if len(p) < 64 {
			state += splitmix.Mix(other)
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

// next returns the index of the next non-blank byte from i on.
func next(raw []byte, i int) int {
	for raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r' {
		i++
	}
	return i
}

// skip returns the index behind the value, in valid JSON, that begins at i.
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
