package extproc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-epp/weir/pkg/extproc/body"
)

// requestBody collects the body of one request.
type requestBody struct {
	bytes []byte
	// charged is the capacity of bytes that the account was told.
	charged int64
	// whole says that nothing more comes: otherwise bytes is the first part, which says nothing.
	whole bool
	// trailers says that the body was ended by trailers, which are answered after it.
	trailers bool
	seen     bool
	fields   body.Fields
}

// add takes in one message's part; last is that of the last one. The first is kept as it is, without a copy: most bodies
// are one message. Room for more grows by doubling, at most to the smaller of what was announced and the limit, and what
// is charged is the room, not what is in it. An error is what the request is turned away with.
func (b *requestBody) add(part []byte, last bool, announced int64, limits *Limits, memory *bodyAccount, a *arrival) error {
	b.seen = true
	if last {
		if err := memory.complete(a); err != nil {
			return err
		}
	}
	length := int64(len(b.bytes) + len(part))
	if length > limits.MaxBodyBytes {
		return bodyTooLarge(limits.MaxBodyBytes)
	}
	if len(part) == 0 {
		return nil
	}
	room := int64(cap(b.bytes))
	if b.bytes == nil {
		room = max(length, min(int64(cap(part)), limits.MaxBodyBytes)) // above the limit it is the allocator's rounding
	} else if length > room {
		if room = min(2*room, limits.MaxBodyBytes); announced > 0 {
			room = min(room, announced)
		}
		if room = max(room, length); last {
			room = length
		}
	}
	if err := memory.charge(a, int64(len(part)), room-b.charged, limits.MaxBodyBytesTotal); err != nil {
		return err
	}
	b.charged = room
	switch {
	case b.bytes == nil:
		b.bytes = part
		return nil
	case length > int64(cap(b.bytes)):
		b.bytes = append(make([]byte, 0, room), b.bytes...)
	}
	b.bytes = append(b.bytes, part...)
	return nil
}

func bodyTooLarge(limit int64) error {
	return tooLarge(fmt.Sprintf("The request body is larger than %d bytes.", limit))
}

// scan reads the fields of a whole body, by its content type: a form is a form, and everything else is JSON, whatever it
// is called. So what neither is cannot hide its model.
func (b *requestBody) scan(contentType string) error {
	var err error
	if body.IsForm(contentType) {
		b.fields, err = body.ScanForm(b.bytes, contentType)
	} else {
		b.fields, err = body.Scan(b.bytes)
	}
	if err != nil {
		return badRequest("", fmt.Sprintf("The request body is not valid: %v.", err))
	}
	return nil
}

// mayNameModel reports whether a reader that takes more than scan does might find a model in the body: a form, or what
// begins as a JSON object, in any encoding of JSON. Python reads NaN, deeper nesting, byte order marks and UTF-16; others
// ignore what follows the object.
func (b *requestBody) mayNameModel(contentType string) bool {
	const before = " \t\r\n\x00\xef\xbb\xbf\xfe\xff" // blanks, the zeros of wider encodings, byte order marks
	first := slices.IndexFunc(b.bytes, func(c byte) bool { return strings.IndexByte(before, c) < 0 })
	return body.IsForm(contentType) || first >= 0 && b.bytes[first] == '{'
}
