package recording

// Drop does what Run does when it is woken.
func (r *Recorder) Drop() error { return r.drop() }

// Len is the length of the present segment.
func (r *Recorder) Len() int { return len(r.buf) }

// SegmentSize is where a segment ends.
const SegmentSize = segmentSize

// Memory is how much memory the ring holds, in bytes.
func (r *Recorder) Memory() (held int) {
	for _, s := range append(r.ring.segments, r.ring.spare...) {
		held += cap(s)
	}
	return held
}

// Resum returns a file with every checksum made right.
func Resum(text []byte) []byte {
	f := &file{out: text[:len(magic):len(magic)]}
	for rest := text[len(magic):]; len(rest) >= chunkHead; {
		kind, size := rest[0], int(order.Uint32(rest[1:]))
		f.chunk(kind, rest[chunkHead:chunkHead+size])
		rest = rest[chunkHead+size:]
	}
	return f.out
}

// Chunks are where the bytes of each chunk of a kind begin and end.
func Chunks(text []byte, kind byte) (chunks [][2]int) {
	for at := len(magic); at < len(text); {
		size := int(order.Uint32(text[at+1:]))
		if text[at] == kind {
			chunks = append(chunks, [2]int{at + chunkHead, at + chunkHead + size})
		}
		at += chunkHead + size
	}
	return chunks
}
