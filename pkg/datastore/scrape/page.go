package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"
)

// maxSeries is the most series of known metrics on a page: more than the ranks and models of any engine.
const maxSeries = 512

// page collects the quantities of one page. It is reused.
type page struct {
	index map[string][]series
	found [numEngines]sums
	seen  []sighting
	begun bool // a line has been seen
	lora  adapterLine
	buf   []byte
}

// sighting is a seen series; the first of two with one name and equal labels counts.
type sighting struct {
	engine engine
	what   quantity
	labels uint64 // their hash
}

var seed = maphash.MakeSeed()

// lineSize is the longest line read; longer ones are skipped.
const lineSize = 32 << 10

func newPage(names Names) *page {
	return &page{index: seriesOf(names), lora: lineOf(names.Adapters), buf: make([]byte, lineSize)}
}

// read reads a page of at most most bytes, in Prometheus' text format or OpenMetrics.
func (p *page) read(r io.Reader, most int64) (Reading, error) {
	p.found, p.seen, p.begun = [numEngines]sums{}, p.seen[:0], false
	p.lora.begin()
	have, skip, total := 0, false, int64(0) // skip: the rest of a line that is too long
	for {
		n, err := r.Read(p.buf[have:])
		if total += int64(n); total > most {
			return Reading{}, tooLarge(most)
		}
		text := p.buf[:have+n]
		for {
			end := bytes.IndexByte(text, '\n')
			if end < 0 {
				break
			}
			if line := text[:end]; !skip {
				if err := p.line(line); err != nil {
					return Reading{}, err
				}
			}
			skip, text = false, text[end+1:]
		}
		have = copy(p.buf, text)
		if have == len(p.buf) {
			have, skip = 0, true
		}
		switch {
		case errors.Is(err, io.EOF):
			if have > 0 && !skip {
				if err := p.line(p.buf[:have]); err != nil {
					return Reading{}, err
				}
			}
			return p.result()
		case err != nil:
			return Reading{}, err
		}
	}
}

// result returns the page's reading: by configured names, or without any by the metrics of the first engine that give
// the number of requests.
func (p *page) result() (Reading, error) {
	own := &p.found[configured]
	for e := range numEngines {
		s := p.found[e]
		for what, known := range own.known {
			if known {
				s.value[what], s.known[what] = own.value[what], true
			}
		}
		if s.complete() {
			r := s.reading(e)
			r.Adapters = p.lora.state()
			return r, nil
		}
	}
	return Reading{}, &failure{reason: NoKnownMetric, text: "no metric of a known engine has the number of running and waiting requests"}
}

// line reads one line.
func (p *page) line(line []byte) error {
	if !p.begun {
		line = bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\ufeff")), " \t\r")
		if len(line) == 0 {
			return nil
		}
		if p.begun = true; line[0] == '<' {
			return &failure{reason: HTML, text: "the page is HTML"}
		}
	}
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	end := 0
	for end < len(line) && line[end] != '{' && line[end] != ' ' && line[end] != '\t' {
		end++
	}
	list := p.index[string(line[:end])]
	if list == nil {
		if string(line[:end]) == p.lora.name {
			if labels, value, ok := split(line[end:]); ok {
				p.lora.take(labels, value)
			}
		}
		return nil
	}
	labels, value, ok := split(line[end:])
	if !ok {
		return badLine(line)
	}
	for i := range list {
		if err := p.take(&list[i], line[:end], labels, value); err != nil {
			return err
		}
	}
	return nil
}

// take takes a known series' value.
func (p *page) take(s *series, name, labels, value []byte) error {
	if !haveAll(labels, s.labels) {
		return nil
	}
	text := value
	if s.from != "" {
		v, ok := labelOf(labels, s.from)
		if !ok {
			return nil
		}
		text = v
	}
	n, ok := number(text)
	if !ok {
		if s.from != "" || s.what != running && s.what != waiting {
			return nil // "None", or 0/0, until the engine knows: what is optional is not said
		}
		return &failure{reason: BadValue, text: fmt.Sprintf("%s has the value %q", name, shortened(value))}
	}
	at := sighting{s.engine, s.what, maphash.Bytes(seed, labels)}
	if slices.Contains(p.seen, at) {
		return nil
	}
	if len(p.seen) == maxSeries {
		return &failure{reason: TooLarge, text: fmt.Sprintf("more than %d series of known metrics", maxSeries)}
	}
	p.seen = append(p.seen, at)
	p.found[s.engine].add(s.what, n)
	return nil
}

// split splits the text after a name into the labels, without their braces, and the value.
func split(rest []byte) (labels, value []byte, ok bool) {
	if rest = bytes.TrimLeft(rest, " \t"); len(rest) > 0 && rest[0] == '{' {
		end := closing(rest)
		if end < 0 {
			return nil, nil, false
		}
		labels, rest = rest[1:end], rest[end+1:]
	}
	rest = bytes.Trim(rest, " \t\r")
	if end := bytes.IndexAny(rest, " \t"); end >= 0 {
		rest = rest[:end] // a timestamp follows
	}
	return labels, rest, len(rest) > 0
}

// closing returns the index of the brace that closes the labels, or -1.
func closing(text []byte) int {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i
		}
	}
	return -1
}

// haveAll reports whether the labels of a series include all wanted ones.
func haveAll(labels []byte, wanted []label) bool {
	for _, l := range wanted {
		if v, ok := labelOf(labels, l.name); !ok || string(v) != l.value {
			return false
		}
	}
	return true
}

// labelOf returns the raw value of a label.
func labelOf(labels []byte, name string) (value []byte, ok bool) {
	for len(labels) > 0 {
		labels = bytes.TrimLeft(labels, ", \t")
		eq := bytes.IndexByte(labels, '=')
		if eq < 0 {
			return nil, false
		}
		key := bytes.TrimSpace(labels[:eq])
		rest := bytes.TrimLeft(labels[eq+1:], " \t")
		if len(rest) == 0 || rest[0] != '"' {
			return nil, false
		}
		end := 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return nil, false
		}
		if string(key) == name {
			return rest[1:end], true
		}
		labels = rest[end+1:]
	}
	return nil, false
}

// number parses a value: finite and at least 0.
func number(text []byte) (float64, bool) {
	if len(text) > 40 {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(text), 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 1) // NaN is not at least 0
}

func badLine(line []byte) error {
	return &failure{reason: BadValue, text: fmt.Sprintf("the line %q cannot be read", shortened(line))}
}

// shortened returns the beginning of a text, for an error.
func shortened(text []byte) []byte { return text[:min(len(text), 80)] }
