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
	bad    bool   // the message is cut short, or has a field of a wire type that is not read here
}

// next reads the next field and reports whether there is one.
func (f *fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	tag, n := protowire.ConsumeVarint(f.rest)
	if n < 0 {
		f.bad = true
		return false
	}
	rest := f.rest[n:]
	switch tag & wireMask {
	case wireBytes:
		f.bytes, n = protowire.ConsumeBytes(rest)
	case wireVarint:
		f.number, n = protowire.ConsumeVarint(rest)
	case wireFixed64:
		f.number, n = protowire.ConsumeFixed64(rest)
	default:
		n = -1
	}
	if n < 0 {
		f.bad = true
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
