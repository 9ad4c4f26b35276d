package loadgen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/usage"
)

// readBuffer is the size of an exchanger's buffer: a chunk of a stream, or a part of a large answer.
const readBuffer = 16 << 10

// exchanger sends one request after another and measures them. It belongs to one goroutine at a time.
type exchanger struct {
	session *session
	buffer  []byte
}

func (s *session) newExchanger() *exchanger {
	return &exchanger{session: s, buffer: make([]byte, readBuffer)}
}

// send sends the request with this index, with the retries that the workload's Retry allows, and records its result.
func (e *exchanger) send(ctx context.Context, index int, start time.Time) {
	s := e.session
	result := s.result(index, start)
	var body []byte
	if s.workload.Request.Body != nil {
		body = s.workload.Request.Body(index)
	}
	for {
		*result = Result{Tenant: result.Tenant, Start: result.Start, Attempts: result.Attempts + 1}
		result.Err = e.attempt(ctx, index, body, start, result)
		result.Total = time.Since(start)
		wait, again := s.workload.Retry.next(result, index)
		if !again || !sleepUntil(ctx, time.Now().Add(wait)) {
			return
		}
	}
}

// attempt sends the request once, reads the answer to its end, and fills in the result.
func (e *exchanger) attempt(ctx context.Context, index int, body []byte, start time.Time, result *Result) error {
	if timeout := e.session.workload.Timeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, ErrTimeout)
		defer cancel()
	}
	// The transport itself, not http.Client: no redirects, no cookies, half the allocations.
	response, err := e.session.client.transport.RoundTrip(e.session.request(ctx, index, body))
	if err != nil {
		return fault(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end, or given up
	result.Headers = time.Since(start)
	result.Status = response.StatusCode
	result.RetryAfterMS = response.Header.Get("Retry-After-Ms")
	result.RetryAfter = response.Header.Get("Retry-After")
	result.ShouldRetry = response.Header.Get("X-Should-Retry")
	result.Reason = response.Header.Get("X-Weir-Reason")

	stream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if err := e.read(response.Body, stream, start, result); err != nil {
		return fault(ctx, err)
	}
	if e.session.workload.Request.Stream && result.OK() && result.Events == 0 {
		return ErrNotStream
	}
	return nil
}

// read reads a body to its end.
func (e *exchanger) read(body io.Reader, stream bool, start time.Time, result *Result) error {
	var scanner dataScanner
	var tokens *usage.Reader
	if e.session.workload.Request.Usage {
		tokens = usage.NewReader(stream)
	}
	for {
		n, err := body.Read(e.buffer)
		if n > 0 {
			result.Bytes += int64(n)
			if tokens != nil {
				tokens.Write(e.buffer[:n])
			}
			seen := !stream
			if stream {
				scanner.scan(e.buffer[:n])
				seen = scanner.lines > 0
			}
			if seen && result.FirstData == 0 {
				result.FirstData = time.Since(start)
			}
		}
		if err != nil {
			result.Events, result.Done = scanner.lines, scanner.done
			if tokens != nil {
				counts := tokens.Counts()
				result.Usage, result.UsageKnown = counts.Tokens(false)
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// request is one request of the template. Headers may be shared: the transport only reads them.
func (s *session) request(ctx context.Context, index int, body []byte) *http.Request {
	header := s.header
	if s.workload.Request.Headers != nil {
		header = header.Clone()
		maps.Copy(header, s.workload.Request.Headers(index))
	}
	request := http.Request{
		Method: http.MethodPost, URL: s.address, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(body) > 0 {
		request.ContentLength = int64(len(body))
		request.Body = io.NopCloser(bytes.NewReader(body))
		// Lets the transport resend on another connection if an idle one was closed before a byte was written.
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return request.WithContext(ctx)
}

// fault returns the context's cause if the context has ended, and otherwise the error itself.
func fault(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// dataScanner counts the data lines of a stream of server-sent events, wherever the reads split it. A line ends in LF
// or CRLF.
type dataScanner struct {
	lines int  // data lines begun so far
	done  bool // the last complete data line was [DONE]

	head  [16]byte // the line's first bytes
	n     int      // number of bytes in head
	whole int      // the line's length so far
	data  bool     // the line is a data line
}

func (s *dataScanner) scan(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		s.n += copy(s.head[s.n:], part)
		s.whole += len(part)
		if !s.data && bytes.HasPrefix(s.head[:s.n], []byte("data:")) {
			s.data = true
			s.lines++
		}
		if end < 0 {
			return
		}
		if s.data {
			value := bytes.TrimSpace(s.head[len("data:"):s.n])
			s.done = s.whole <= len(s.head) && string(value) == "[DONE]"
		}
		s.n, s.whole, s.data = 0, 0, false
		p = p[end+1:]
	}
}
