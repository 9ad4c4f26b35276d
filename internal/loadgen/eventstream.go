package loadgen

import "bytes"

// dataScanner counts the data lines of a stream of server-sent events, wherever the reads split it. A line ends in LF
// or CRLF.
type dataScanner struct {
	lines int  // data lines begun so far
	done  bool // the last complete data line was [DONE]

	head  [16]byte // the line's first bytes
	n     int      // how many of head are set
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
