package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-epp/weir/internal/graph"
	"github.com/weir-epp/weir/pkg/dispatch"
)

// Rename returns a recording in which name replaces the keys of flows, as if the recorder had hidden them. A recording with
// hidden keys is returned unchanged. Rename replays the recording, so it belongs to the same build, and the caller bounds
// time and memory as for Replay.
func (f *Format) Rename(recorded []byte, name func(string) string) ([]byte, error) {
	p, file, err := f.open(bytes.NewReader(recorded))
	if err != nil || file.header.Hidden {
		return recorded, err
	}
	name = dispatch.Renaming(name)
	checkpoint, err := f.renamed(p.state, &file.header, name)
	if err != nil {
		return nil, err
	}
	h := file.header
	h.Config, h.Hidden = HiddenConfig(h.Config, name), true
	out := newFile(h)
	out.chunk(chunkCheckpoint, checkpoint)
	p.copy = &renamer{newSegment(p.base), name}
	for {
		segment, err := file.segment()
		if err != nil {
			return nil, err
		}
		if segment == nil {
			out.chunk(chunkEnd, nil)
			return out.out, nil
		}
		p.copy.restart(nil)
		if err := p.play(segment); err != nil {
			return nil, err
		}
		out.chunk(chunkSegment, p.copy.buf)
	}
}

// renamed returns the checkpoint of a copy of s with renamed keys.
func (f *Format) renamed(s *state, h *header, name func(string) string) ([]byte, error) {
	checkpoints, err := f.checkpoints(h.Config)
	if err != nil {
		return nil, err
	}
	capture := checkpoints.NewCapture((*state)(nil))
	if err := capture.Take(s, fewValues+valuesOfEach*len(s.requests)); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	copied, err := capture.Build(graph.Changes{Key: name, Time: func(t time.Time) time.Time { return t }})
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return checkpoints.Write(copied)
}

// renamer writes a copy of the segment that a reader reads, with renamed keys of flows.
type renamer struct {
	*segment
	name func(string) string
}

// apart calls read, whose bytes are not copied, and then write with the copy, if there is one.
func (r *reader) apart(read func(), write func(*renamer)) {
	copied := r.copy
	r.copy = nil
	read()
	if r.copy = copied; copied != nil && !r.broken {
		write(copied)
	}
}

// key reads the key of a flow.
func (r *reader) key() (key string) {
	r.apart(func() { key = r.anyText() }, func(c *renamer) { c.text(key, c.name) })
	return key
}

// text reads a text that is no key.
func (r *reader) text() (text string) {
	r.apart(func() { text = r.anyText() }, func(c *renamer) { c.text(text, nil) })
	return text
}

// configuration reads a changed configuration.
func (r *reader) configuration() (c configuration, err error) {
	r.apart(func() { err = json.Unmarshal(r.bytes(), &c) }, func(out *renamer) {
		out.bytes(configurationText(HiddenConfig(c.Dispatch, out.name), c.Scheduling))
	})
	return c, err
}
