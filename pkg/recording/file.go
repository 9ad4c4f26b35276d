package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// A file is an identifying line, followed by chunks: a header, a checkpoint, the segments after it, and an end. A chunk
// consists of its kind, the length of its content, a checksum and the content. The checksum also covers the previous
// chunk's checksum, so removed or inserted chunks are noticed. It is not a signature: the writer of a forged file can
// make every checksum right.

const magic = "weir recording 3\n"

// The kinds of chunks.
const (
	chunkHeader     = 'h'
	chunkCheckpoint = 'c'
	chunkSegment    = 's'
	chunkEnd        = 'e'
)

// mostContent is the largest length of a chunk's content in bytes, by its kind. A recorder's segments are much shorter,
// unless an event has a large configuration or pool.
var mostContent = map[byte]uint32{
	chunkHeader: 64 << 20, chunkCheckpoint: 1 << 30, chunkSegment: 64 << 20, chunkEnd: 0,
}

// chunkHead is the size in bytes of a chunk before its content.
const chunkHead = 1 + 4 + 4

var order = binary.BigEndian

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the content of a file's first chunk.
type header struct {
	// Base is the time that all times in the file are relative to.
	Base time.Time `json:"base"`
	// Event is the number of events before the checkpoint.
	Event uint64 `json:"event"`
	// Config is the configuration at the machine's creation.
	Config dispatch.Config `json:"config"`
	// Hidden is true if the keys of flows are hashes.
	Hidden bool `json:"hidden,omitempty"`
}

// file is a file being written.
type file struct {
	out  []byte
	last uint32 // checksum of the last chunk
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

// chunk appends a chunk.
func (f *file) chunk(kind byte, content []byte) {
	f.last = checksum(f.last, kind, content)
	f.out = append(f.out, kind)
	f.out = order.AppendUint32(f.out, uint32(len(content)))
	f.out = order.AppendUint32(f.out, f.last)
	f.out = append(f.out, content...)
}

// checksum returns the checksum of a chunk; last is that of the chunk before.
func checksum(last uint32, kind byte, content []byte) uint32 {
	head := order.AppendUint32([]byte{kind}, uint32(len(content)))
	return crc32.Update(crc32.Update(last, castagnoli, head), castagnoli, content)
}

// fileReader reads a file chunk by chunk, so it needs memory for one chunk only.
type fileReader struct {
	in         *bufio.Reader
	chunks     int    // number of chunks read
	last       uint32 // checksum of the last chunk
	header     header
	checkpoint []byte
}

// Errors of files.
var (
	errNoRecording = errors.New("not a recording of this version of Weir (epp serves one at /debug/recording)")
	errTruncated   = errors.New("the recording is cut off")
)

// openFile reads the beginning of a file, up to its checkpoint. Of any other input it reads only the first line.
func openFile(in io.Reader) (*fileReader, error) {
	f := &fileReader{in: bufio.NewReaderSize(in, segmentSize)}
	line := make([]byte, len(magic))
	if n, err := io.ReadFull(f.in, line); string(line[:n]) != magic {
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		return nil, errNoRecording
	}
	text, err := f.want(chunkHeader)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &f.header); err != nil {
		return nil, fmt.Errorf("the recording's header: %w", err)
	}
	f.checkpoint, err = f.want(chunkCheckpoint)
	return f, err
}

// want reads the next chunk, which must be of this kind.
func (f *fileReader) want(kind byte) ([]byte, error) {
	got, content, err := f.next()
	if err == nil && got != kind {
		err = f.broken("it is of a kind that cannot be here")
	}
	return content, err
}

// segment reads the next segment. It returns nil at the end of the file.
func (f *fileReader) segment() ([]byte, error) {
	kind, content, err := f.next()
	switch {
	case err != nil:
		return nil, err
	case kind == chunkSegment:
		return content, nil
	case kind != chunkEnd:
		return nil, f.broken("it is of a kind that cannot be here")
	}
	if _, err := f.in.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("the recording is broken: data follow its end")
	}
	return nil, nil
}

// next reads a chunk and checks it.
func (f *fileReader) next() (kind byte, content []byte, err error) {
	var head [chunkHead]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, nil, truncated(err)
	}
	f.chunks++
	kind, size, sum := head[0], order.Uint32(head[1:]), order.Uint32(head[5:])
	most, known := mostContent[kind]
	switch {
	case !known:
		return 0, nil, f.broken("its kind is unknown")
	case size > most:
		return 0, nil, f.broken(fmt.Sprintf("it has %d bytes, more than %d", size, most))
	}
	var buf bytes.Buffer // grows with the bytes present, not with those announced
	if _, err := io.CopyN(&buf, f.in, int64(size)); err != nil {
		return 0, nil, truncated(err)
	}
	if f.last = checksum(f.last, kind, buf.Bytes()); f.last != sum {
		return 0, nil, f.broken("its checksum is wrong")
	}
	return kind, buf.Bytes(), nil
}

// broken returns the error of the last chunk.
func (f *fileReader) broken(why string) error {
	return fmt.Errorf("chunk %d of the recording is broken: %s", f.chunks-1, why)
}

// truncated returns errTruncated for the end of the input, and other read errors unchanged.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}
