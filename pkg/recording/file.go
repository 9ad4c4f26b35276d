package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// A file is a line that says what it is, and chunks: a header, a checkpoint, the segments that follow it, and an end. A
// chunk is its kind, its length, its checksum and its bytes. A checksum is over that of the chunk before as well, so that
// none can be left out or put in.

const magic = "weir recording 1\n"

// The kinds of chunks.
const (
	chunkHeader     = 'h'
	chunkCheckpoint = 'c'
	chunkSegment    = 's'
	chunkEnd        = 'e'
)

// chunkHead is the size of what is before a chunk's bytes.
const chunkHead = 1 + 4 + 4

var order = binary.BigEndian

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what a file says of itself.
type header struct {
	// Base is the time that all times are counted from.
	Base time.Time `json:"base"`
	// Event is how many events were before the checkpoint.
	Event uint64 `json:"event"`
	// Config is the configuration that the machine began with.
	Config dispatch.Config `json:"config"`
}

// file is one being written.
type file struct {
	out  []byte
	last uint32 // checksum
}

func newFile(h header) *file {
	f := &file{out: []byte(magic)}
	text, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	f.chunk(chunkHeader, text)
	return f
}

func (f *file) chunk(kind byte, content []byte) {
	f.last = checksum(f.last, kind, content)
	f.out = append(f.out, kind)
	f.out = order.AppendUint32(f.out, uint32(len(content)))
	f.out = order.AppendUint32(f.out, f.last)
	f.out = append(f.out, content...)
}

func checksum(last uint32, kind byte, content []byte) uint32 {
	head := order.AppendUint32([]byte{kind}, uint32(len(content)))
	return crc32.Update(crc32.Update(last, castagnoli, head), castagnoli, content)
}

// contents are a file's, read and checked.
type contents struct {
	header     header
	checkpoint []byte
	segments   [][]byte
}

// Errors of files.
var (
	errNoRecording = errors.New("this is no recording of this version of Weir")
	errTruncated   = errors.New("the recording is cut off")
)

func parse(text []byte) (c contents, err error) {
	rest, ok := bytes.CutPrefix(text, []byte(magic))
	if !ok {
		return c, errNoRecording
	}
	last := uint32(0)
	for n := 0; ; n++ {
		if len(rest) < chunkHead {
			return c, errTruncated
		}
		kind, size, sum := rest[0], order.Uint32(rest[1:]), order.Uint32(rest[5:])
		if rest = rest[chunkHead:]; uint64(size) > uint64(len(rest)) {
			return c, errTruncated
		}
		content := rest[:size]
		rest = rest[size:]
		if last = checksum(last, kind, content); last != sum {
			return c, fmt.Errorf("chunk %d of the recording is broken: its checksum is wrong", n)
		}
		switch {
		case kind == chunkHeader && n == 0:
			if err := json.Unmarshal(content, &c.header); err != nil {
				return c, fmt.Errorf("the recording's header: %w", err)
			}
		case kind == chunkCheckpoint && n == 1:
			c.checkpoint = content
		case kind == chunkSegment && n > 1:
			c.segments = append(c.segments, content)
		case kind == chunkEnd && n > 1 && len(rest) == 0:
			return c, nil
		default:
			return c, fmt.Errorf("chunk %d of the recording is broken: it is of no kind that can be there", n)
		}
	}
}

// Summary is what a replay has come to.
type Summary struct {
	// From and To are the times of the first and the last event that have one.
	From, To time.Time
	Events   uint64
	Arrivals uint64
	// Verdicts is how many were compared, all of them equal.
	Verdicts uint64
}

func (s *Summary) add(now time.Time) {
	s.Events++
	if now.IsZero() {
		return
	}
	if s.From.IsZero() {
		s.From = now
	}
	s.To = now
}

// Replay repeats a recording on a machine and a board of its own. The error is a *Difference at the first event that
// comes to something else than what was recorded.
func (f *Format) Replay(text []byte) (Summary, error) {
	p, c, err := f.open(text)
	if err != nil {
		return Summary{}, err
	}
	for _, segment := range c.segments {
		if err := p.play(segment); err != nil {
			return p.summary, err
		}
	}
	return p.summary, nil
}

// open makes the player of a file, which stands at its checkpoint.
func (f *Format) open(text []byte) (*player, contents, error) {
	c, err := parse(text)
	if err != nil {
		return nil, c, err
	}
	checkpoints, err := f.checkpoints(c.header.Config)
	if err != nil {
		return nil, c, err
	}
	s, err := restore(checkpoints, c.checkpoint)
	if err != nil {
		return nil, c, err
	}
	return &player{state: s, base: c.header.Base, events: c.header.Event}, c, nil
}
