package kvevents

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// kind is the kind of a value of msgpack.
type kind uint8

const (
	empty kind = iota // nil
	number
	text // or bytes
	list
	table
	other // a truth value, a number with a fraction, an extension
)

// item is the head of a value.
type item struct {
	kind
	n uint64 // a number's value in two's complement; otherwise the number of bytes, values or pairs that follow
}

var errShort = errors.New("kvevents: a batch ends within a value")

// items reads the values of one batch, never past its end. It keeps none of them.
type items struct {
	r    *bufio.Reader
	left uint64 // bytes of the batch
}

// cut returns the error of a connection that ends within a message.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// bytes reads an unsigned number of 0 to 8 bytes.
func (d *items) bytes(n uint64) (x uint64, err error) {
	if n > d.left {
		return 0, errShort
	}
	d.left -= n
	raw, err := d.r.Peek(int(n))
	if err != nil {
		return 0, fmt.Errorf("kvevents: batch: %w", cut(err))
	}
	for _, b := range raw {
		x = x<<8 | uint64(b)
	}
	_, err = d.r.Discard(int(n))
	return x, err
}

// discard skips bytes.
func (d *items) discard(n uint64) error {
	if n > d.left {
		return errShort
	}
	d.left -= n
	if _, err := d.r.Discard(int(n)); err != nil {
		return fmt.Errorf("kvevents: batch: %w", cut(err))
	}
	return nil
}

// head reads the head of the next value (github.com/msgpack/msgpack/blob/master/spec.md).
func (d *items) head() (item, error) {
	format, err := d.bytes(1)
	if err != nil {
		return item{}, err
	}
	sized := func(k kind, width uint64) (item, error) {
		n, err := d.bytes(width)
		return item{k, n}, err
	}
	switch f := byte(format); {
	case f <= 0x7f:
		return item{number, format}, nil
	case f <= 0x8f:
		return item{table, format & 0xf}, nil
	case f <= 0x9f:
		return item{list, format & 0xf}, nil
	case f <= 0xbf:
		return item{text, format & 0x1f}, nil
	case f >= 0xe0:
		return item{number, format | ^uint64(0xff)}, nil
	case f == 0xc0:
		return item{kind: empty}, nil
	case f == 0xc1:
		return item{}, errors.New("kvevents: a batch has the byte 0xc1, which msgpack never uses")
	case f <= 0xc3:
		return item{kind: other}, nil
	case f <= 0xc6:
		return sized(text, 1<<(f-0xc4))
	case f <= 0xc9:
		i, err := sized(other, 1<<(f-0xc7))
		i.n++ // the type of the extension
		return i, err
	case f <= 0xcb:
		return item{other, 4 << (f - 0xca)}, nil
	case f <= 0xcf:
		return sized(number, 1<<(f-0xcc))
	case f <= 0xd3:
		width := uint64(1) << (f - 0xd0)
		i, err := sized(number, width)
		i.n = uint64(int64(i.n<<(64-8*width)) >> (64 - 8*width))
		return i, err
	case f <= 0xd8:
		return item{other, 1 + 1<<(f-0xd4)}, nil
	case f <= 0xdb:
		return sized(text, 1<<(f-0xd9))
	case f <= 0xdd:
		return sized(list, 2<<(f-0xdc))
	default:
		return sized(table, 2<<(f-0xde))
	}
}

// skip skips the rest of a value of any depth after its head. Each value in it takes at least a byte, so the number of
// remaining values cannot overflow.
func (d *items) skip(i item) error {
	for values := uint64(1); ; {
		switch values--; i.kind {
		case list:
			values += i.n
		case table:
			values += 2 * i.n
		case text, other:
			if err := d.discard(i.n); err != nil {
				return err
			}
		case empty, number:
		}
		if values == 0 {
			return nil
		}
		if values > d.left {
			return errShort
		}
		var err error
		if i, err = d.head(); err != nil {
			return err
		}
	}
}

// word reads a text of at most 32 bytes; a longer one becomes "".
func (d *items) word(i item) (string, error) {
	if i.kind != text || i.n > 32 {
		return "", d.skip(i)
	}
	if i.n > d.left {
		return "", errShort
	}
	d.left -= i.n
	raw := make([]byte, i.n)
	if _, err := io.ReadFull(d.r, raw); err != nil {
		return "", fmt.Errorf("kvevents: batch: %w", err)
	}
	return string(raw), nil
}
