package prefix

import "hash/fnv"

// Prefix is a prompt as the index sees it: the keys of its blocks, each of which stands for all up to its end.
type Prefix struct {
	// Keys are those of the blocks, in order.
	Keys []uint64
	// Ends are where the blocks end, in bytes of text, of a prompt of Bytes. They never fall.
	Ends  []uint32
	Bytes uint32
	// Tokens is the length of the prompt in tokens, as it is estimated.
	Tokens int64
}

// tokens returns how many tokens the first blocks have.
func (p *Prefix) tokens(blocks int) int64 {
	if blocks == 0 || p.Bytes == 0 {
		return 0
	}
	return p.Tokens * int64(min(p.Ends[blocks-1], p.Bytes)) / int64(p.Bytes)
}

// perStep is how many tokens a block of a session has.
const perStep = 1024

// mostSteps bounds the blocks of a session.
const mostSteps = 256

// Session is the prefix of a request whose prompt is known by the key of its session alone: so much of it is taken to be
// cached as the session's last prompt had.
func Session(key uint64, tokens int64) Prefix {
	steps := int(min(max(tokens/perStep, 1), mostSteps))
	p := Prefix{Tokens: tokens, Bytes: uint32(min(max(tokens, 1), 1<<31))}
	for i := range steps {
		key = mixed(key ^ 0x9e3779b97f4a7c15)
		end := uint32((i + 1) * perStep)
		if i == steps-1 {
			end = p.Bytes
		}
		p.Keys, p.Ends = append(p.Keys, key), append(p.Ends, min(end, p.Bytes))
	}
	return p
}

// mixed spreads the bits of a key (splitmix64).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashOf hashes a name, alike in every process.
func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return mixed(h.Sum64())
}
