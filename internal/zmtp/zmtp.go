// Package zmtp implements ZeroMQ's wire protocol for publishing and subscribing: ZMTP 3.0 (rfc.zeromq.org/spec/23) with
// the mechanism NULL. A peer of a later version falls back to 3.0.
//
// It never allocates memory for an announced size: the caller reads the bytes of a frame itself (ADR 0153).
package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Socket types of the two sides.
const (
	Pub = "PUB"
	Sub = "SUB"
)

// Flags of a frame.
const (
	more    = 1
	long    = 2
	command = 4
)

// greeting is the same for both sides: signature, version 3.0, mechanism, no server, filler.
var greeting = append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL"), make([]byte, 48)...)

// mostReady bounds the last command of a handshake, in bytes.
const mostReady = 512

// Shake exchanges greetings on an unused connection, as a socket of type own, and checks that the peer is of type peer.
// The connection needs a deadline.
func Shake(conn io.Writer, r *bufio.Reader, own, peer string) error {
	ready := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(own)))
	ready = append(ready, own...)
	hello := append(append(bytes.Clone(greeting), command, byte(len(ready))), ready...)
	if _, err := conn.Write(hello); err != nil {
		return fmt.Errorf("zmtp: greeting: %w", err)
	}
	var theirs [64]byte
	if _, err := io.ReadFull(r, theirs[:]); err != nil {
		return fmt.Errorf("zmtp: greeting: %w", err)
	}
	if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 {
		return errors.New("zmtp: the peer does not speak ZMTP 3")
	}
	if mechanism := string(bytes.TrimRight(theirs[12:32], "\x00")); mechanism != "NULL" {
		return fmt.Errorf("zmtp: the peer wants the mechanism %.20q, only NULL is known", mechanism)
	}
	f, err := Next(r)
	if err != nil {
		return err
	}
	if !f.Command || f.Size > mostReady {
		return errors.New("zmtp: the peer does not say READY")
	}
	body := make([]byte, f.Size)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("zmtp: READY: %w", err)
	}
	rest, ok := bytes.CutPrefix(body, []byte("\x05READY"))
	if !ok {
		return fmt.Errorf("zmtp: the peer says %.40q instead of READY", body)
	}
	for len(rest) > 0 {
		name := rest[1:min(len(rest), 1+int(rest[0]))]
		rest = rest[1+len(name):]
		if len(rest) < 4 {
			return errors.New("zmtp: a property of READY is cut off")
		}
		n := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; uint64(n) > uint64(len(rest)) {
			return errors.New("zmtp: a property of READY is cut off")
		}
		if value := string(rest[:n]); bytes.EqualFold(name, []byte("Socket-Type")) && value != peer && value != "X"+peer {
			return fmt.Errorf("zmtp: the peer is a socket of type %.10q, want %s", value, peer)
		}
		rest = rest[n:]
	}
	return nil
}

// Frame is the head of a frame, whose body follows.
type Frame struct {
	Size    uint64 // of the body, in bytes, announced by the peer
	More    bool   // further frames of the same message follow
	Command bool   // it is not part of a message
}

// Next reads the head of the next frame. At the end of the connection before it the error is io.EOF.
func Next(r *bufio.Reader) (f Frame, err error) {
	flags, err := r.ReadByte()
	if err != nil {
		return f, err
	}
	if flags&^(more|long|command) != 0 || flags&(more|command) == more|command {
		return f, fmt.Errorf("zmtp: a frame has the flags %#x", flags)
	}
	f.More, f.Command = flags&more != 0, flags&command != 0
	size := [8]byte{}
	into := size[7:]
	if flags&long != 0 {
		into = size[:]
	}
	if _, err := io.ReadFull(r, into); err != nil {
		return f, fmt.Errorf("zmtp: head of a frame: %w", err)
	}
	f.Size = binary.BigEndian.Uint64(size[:])
	return f, nil
}

// Append appends a message of some frames.
func Append(dst []byte, frames ...[]byte) []byte {
	for i, f := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = more
		}
		if len(f) > 255 {
			dst = binary.BigEndian.AppendUint64(append(dst, flags|long), uint64(len(f)))
		} else {
			dst = append(dst, flags, byte(len(f)))
		}
		dst = append(dst, f...)
	}
	return dst
}

// Subscription returns the body of a SUB's message that subscribes to messages beginning with a topic.
func Subscription(topic string) []byte { return append([]byte{1}, topic...) }
