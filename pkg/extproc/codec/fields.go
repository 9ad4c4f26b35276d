package codec

import "google.golang.org/protobuf/encoding/protowire"

// A tag is the number of a field, shifted by fieldShift, and its wire type.
const (
	wireVarint  = uint64(protowire.VarintType)
	wireFixed64 = uint64(protowire.Fixed64Type)
	wireBytes   = uint64(protowire.BytesType)
	fieldShift  = 3
	wireMask    = 1<<fieldShift - 1
)

// fields reads the fields of one message, one after the other.
type fields struct {
	rest   []byte
	tag    uint64
	bytes  []byte // the value of a string, of bytes or of a message; a part of the message, with room up to its end
	number uint64 // the value of any other field
	bad    bool   // the message is truncated, or has a field of an unhandled wire type
}

// next reads the next field and reports whether there is one.
func (f *fields) next() bool {
	b := f.rest
	if len(b) == 0 {
		return false
	}
	if len(b) > 1 && b[0]&(1<<7|wireMask) == byte(wireBytes) && b[1] < 1<<7 && len(b)-2 >= int(b[1]) { // nearly always
		f.tag, f.bytes, f.rest = uint64(b[0]), b[2:2+b[1]], b[2+b[1]:]
		return true
	}
	tag, n := protowire.ConsumeVarint(b)
	rest := b[max(n, 0):]
	switch {
	case n < 0:
	case tag&wireMask == wireBytes:
		f.bytes, n = protowire.ConsumeBytes(rest)
	case tag&wireMask == wireVarint:
		f.number, n = protowire.ConsumeVarint(rest)
	case tag&wireMask == wireFixed64:
		f.number, n = protowire.ConsumeFixed64(rest)
	default:
		n = -1
	}
	if f.bad = n < 0; f.bad {
		return false
	}
	f.tag, f.rest = tag, rest[n:]
	return true
}

// count returns the number of fields that have the tag.
func count(message []byte, tag uint64) int {
	n := 0
	for f := (fields{rest: message}); f.next(); {
		if f.tag == tag {
			n++
		}
	}
	return n
}
