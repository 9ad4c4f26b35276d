package modelsim

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// Values of response headers, shared by all answers; net/http does not change them.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream; charset=utf-8"}
	textType   = []string{"text/plain; version=0.0.4; charset=utf-8"}
)

// delivery writes one answer, with its quirks.
type delivery struct {
	w     http.ResponseWriter
	ctx   context.Context // ends when the client leaves
	quirk *Quirk
	chunk int // index of the next chunk size
}

// headers sets the answer's headers, and announces its trailers.
func (d *delivery) headers(contentType []string) {
	header := d.w.Header()
	header["Content-Type"] = contentType
	maps.Copy(header, d.quirk.Header)
	for key, values := range d.quirk.Trailer {
		header[http.TrailerPrefix+key] = values
	}
}

// whole sends a complete answer.
func (d *delivery) whole(status int, body []byte) error {
	d.headers(jsonType)
	if len(d.quirk.Trailer) == 0 {
		d.w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	d.w.WriteHeader(status)
	if d.quirk.Reset == ResetMidAnswer {
		_ = d.write(body[:len(body)/2])
		d.reset()
	}
	return d.write(body)
}

// open sends the headers of a stream at once.
func (d *delivery) open() {
	d.headers(streamType)
	d.w.WriteHeader(http.StatusOK)
	d.flush()
}

// write sends a part of the body, in odd chunks if the quirk has any.
func (d *delivery) write(body []byte) error {
	sizes := d.quirk.ChunkSizes
	if len(sizes) == 0 {
		_, err := d.w.Write(body)
		return err
	}
	for len(body) > 0 {
		if d.chunk > 0 {
			if err := d.pause(d.quirk.ChunkPause); err != nil {
				return err
			}
		}
		size := min(sizes[d.chunk%len(sizes)], len(body))
		d.chunk++
		if _, err := d.w.Write(body[:size]); err != nil {
			return err
		}
		d.flush()
		body = body[size:]
	}
	return nil
}

func (d *delivery) flush() {
	if flusher, ok := d.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// reset sends what has been written and breaks the connection, or the stream.
func (d *delivery) reset() {
	d.flush()
	panic(http.ErrAbortHandler)
}

// pause waits, unless the client leaves.
func (d *delivery) pause(t time.Duration) error {
	if t <= 0 {
		return nil
	}
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}
