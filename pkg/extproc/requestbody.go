package extproc

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// requestBody collects the body of one request.
type requestBody struct {
	bytes []byte
	// held is what the account was told.
	held int64
	// whole says that nothing more comes: otherwise bytes is the first part.
	whole bool
	// trailers says that the body was ended by trailers, which are answered after it.
	trailers bool
	seen     bool
	fields   body.Fields
}

// maxPreallocated bounds what a client's content-length alone can make us allocate.
const maxPreallocated = 1 << 20

// add takes in one message's part. The first is kept as it is, without a copy: most bodies are one message.
func (b *requestBody) add(part []byte, announced int64, limits *Limits, memory *bodyAccount) error {
	b.seen = true
	n := int64(len(part))
	if b.held+n > limits.MaxBodyBytes {
		return bodyTooLarge(limits.MaxBodyBytes)
	}
	if !memory.take(n, limits.MaxBodyBytesTotal) {
		return fmt.Errorf("extproc: the bodies held take %d bytes: %w", limits.MaxBodyBytesTotal, flowcontrol.ErrNoMemory)
	}
	b.held += n
	switch {
	case n == 0:
	case b.bytes == nil:
		b.bytes = part
	default:
		if len(b.bytes)+len(part) > cap(b.bytes) && announced > 0 {
			grown := make([]byte, len(b.bytes), max(int64(len(b.bytes))+n, min(announced, limits.MaxBodyBytes, maxPreallocated)))
			copy(grown, b.bytes)
			b.bytes = grown
		}
		b.bytes = append(b.bytes, part...)
	}
	return nil
}

func bodyTooLarge(limit int64) error {
	return tooLarge(fmt.Sprintf("The request body is larger than %d bytes.", limit))
}

// drop gives the bytes back.
func (b *requestBody) drop(memory *bodyAccount) {
	memory.give(b.held)
	b.bytes, b.held = nil, 0
}

// scan reads the fields.
func (b *requestBody) scan() error {
	var err error
	b.fields, err = body.Scan(b.bytes, !b.whole)
	if err != nil {
		return badRequest("", fmt.Sprintf("The request body is not valid: %v.", err))
	}
	return nil
}
