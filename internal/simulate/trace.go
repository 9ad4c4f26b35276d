package simulate

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/splitmix"
)

// TraceOptions are the options for reading a trace.
type TraceOptions struct {
	// Speed divides the times between arrivals; above 0.
	Speed float64
	// Flow is the flow of requests without one in the trace.
	Flow string
	// Most is the largest number of requests; 0: no limit.
	Most int
	// Repeat is the number of times to read the trace, one after the other; each time its prompts have other prefixes.
	Repeat int
	// Block is the number of tokens in a block of hash_ids.
	Block int
	// Size is the size of the file in bytes, for Fraction; 0: unknown.
	Size int64
}

// longestLine bounds a line of a trace, in bytes.
const longestLine = 4 << 20

// Trace is a source that reads a file request by request.
type Trace struct {
	options TraceOptions
	name    string
	open    func() (io.ReadCloser, error)

	file  *counted
	lines lineReader
	round int           // number of readings begun
	since time.Duration // the begin of this reading
	last  time.Duration // the last arrival
	first time.Duration // the first arrival of the file
	begun bool          // first is known
	count int
}

// lineReader reads the entries of one kind of trace. At the end it returns io.EOF.
type lineReader interface {
	// read reads the next entry; line is the entry's or the error's line.
	read(e *entry) (line int, err error)
}

// entry is one request of a trace; pointers are for optional values.
type entry struct {
	Timestamp    *float64 `json:"timestamp"` // ms
	Arrival      *float64 `json:"arrival"`   // s
	Flow         string   `json:"flow"`
	Tier         string   `json:"tier"`
	InputLength  *int     `json:"input_length"`
	Input        *int     `json:"input"`
	OutputLength *int     `json:"output_length"`
	Output       *int     `json:"output"`
	MaxOutput    int      `json:"max_output"`
	HashIDs      []uint64 `json:"hash_ids"`
}

// counted counts the bytes read.
type counted struct {
	io.ReadCloser
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// Fraction implements Source.
func (t *Trace) Fraction() float64 {
	rounds := float64(max(1, t.options.Repeat))
	part := 0.0
	if t.options.Size > 0 && t.file != nil {
		part = min(1, float64(t.file.n)/float64(t.options.Size))
	}
	byFile := (float64(max(0, t.round-1)) + part) / rounds
	if t.options.Most > 0 {
		return max(byFile, float64(t.count)/float64(t.options.Most))
	}
	return byFile
}

// OpenTrace returns the source of a trace: CSV if its name ends in .csv, otherwise JSON lines, with Mooncake's fields
// or ours. open opens its file.
func OpenTrace(name string, open func() (io.ReadCloser, error), o TraceOptions) *Trace {
	return &Trace{options: o, name: name, open: open}
}

// Close closes the file.
func (t *Trace) Close() error {
	if t.file == nil {
		return nil
	}
	file := t.file
	t.file = nil
	return file.Close()
}

// Next implements Source. An error names the file and the line.
func (t *Trace) Next() (Request, error) {
	if t.options.Most > 0 && t.count >= t.options.Most {
		return Request{}, io.EOF
	}
	for {
		if t.file == nil {
			if t.round >= max(1, t.options.Repeat) {
				return Request{}, io.EOF
			}
			if err := t.begin(); err != nil {
				return Request{}, err
			}
		}
		var e entry
		line, err := t.lines.read(&e)
		if errors.Is(err, io.EOF) {
			if err := t.Close(); err != nil {
				return Request{}, err
			}
			if !t.begun {
				return Request{}, fmt.Errorf("%s: has no requests", t.name)
			}
			continue
		}
		if err != nil {
			return Request{}, fmt.Errorf("%s: line %d: %w", t.name, line, err)
		}
		r, err := t.request(&e)
		if err != nil {
			return Request{}, fmt.Errorf("%s: line %d: %w", t.name, line, err)
		}
		t.count++
		return r, nil
	}
}

// begin opens the file.
func (t *Trace) begin() error {
	file, err := t.open()
	if err != nil {
		return err
	}
	t.file = &counted{ReadCloser: file}
	t.round++
	t.since = t.last
	t.begun = false
	if strings.HasSuffix(strings.ToLower(t.name), ".csv") {
		t.lines = newCSVLines(t.file)
	} else {
		t.lines = newJSONLines(t.file)
	}
	return nil
}

// request returns the request of an entry, or an error with all its problems.
func (t *Trace) request(e *entry) (Request, error) {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	length := func(name, other string, a, b *int) int {
		switch {
		case a == nil && b == nil:
			bad("%s: missing", name)
			return 1
		case a != nil && b != nil:
			bad("%s: given twice (also as %s)", name, other)
			return 1
		case a == nil:
			name, a = other, b
		}
		if *a < 1 || *a > MaxTokens {
			bad("%s: %d: must be from 1 to %d", name, *a, MaxTokens)
			return 1
		}
		return *a
	}
	r := Request{Flow: e.Flow, Tier: e.Tier, MaxOutput: e.MaxOutput}
	if r.Flow == "" {
		r.Flow = t.options.Flow
	}
	seconds := 0.0
	switch {
	case e.Timestamp == nil && e.Arrival == nil:
		bad("timestamp: missing")
	case e.Timestamp != nil && e.Arrival != nil:
		bad("timestamp: given twice (also as arrival)")
	case e.Timestamp != nil:
		seconds = *e.Timestamp / 1000
	default:
		seconds = *e.Arrival
	}
	const longest = 100 * 365 * 24 * 3600
	if !(seconds >= 0 && seconds <= longest) {
		bad("timestamp: must be from 0 s to %d s", longest)
		seconds = 0
	}
	at := time.Duration(math.Round(seconds / t.options.Speed * float64(time.Second)))
	if !t.begun {
		t.begun, t.first = true, at
	}
	if at = at - t.first + t.since; at < t.last && len(problems) == 0 {
		bad("timestamp: before that of the line above")
	}
	r.Prompt = length("input_length", "input", e.InputLength, e.Input)
	r.Output = length("output_length", "output", e.OutputLength, e.Output)
	if e.MaxOutput < 0 || e.MaxOutput > MaxTokens {
		bad("max_output: %d: must be from 0 to %d", e.MaxOutput, MaxTokens)
	}
	if n, most := len(e.HashIDs), (r.Prompt+t.options.Block-1)/t.options.Block; n > most {
		bad("hash_ids: %d of them: a prompt of %d tokens has %d blocks of %d", n, r.Prompt, most, t.options.Block)
	}
	if len(problems) > 0 {
		return Request{}, errors.New(strings.Join(problems, "; "))
	}
	r.At, t.last = at, at
	r.Blocks = e.HashIDs
	for i, id := range r.Blocks {
		r.Blocks[i] = splitmix.Mix(id + splitmix.Mix(uint64(t.round)))
	}
	return r, nil
}

// jsonLines reads JSON lines, one for each request.
type jsonLines struct {
	in   *bufio.Scanner
	line int
	text bytes.Reader
}

func newJSONLines(in io.Reader) *jsonLines {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 1<<16), longestLine)
	return &jsonLines{in: s}
}

func (l *jsonLines) read(e *entry) (int, error) {
	for l.in.Scan() {
		l.line++
		text := bytes.TrimSpace(l.in.Bytes())
		if len(text) == 0 {
			continue
		}
		l.text.Reset(text)
		dec := json.NewDecoder(&l.text)
		dec.DisallowUnknownFields()
		if err := dec.Decode(e); err != nil {
			return l.line, jsonError(err)
		}
		if dec.More() {
			return l.line, errors.New("more than one JSON value")
		}
		return l.line, nil
	}
	if err := l.in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return l.line + 1, fmt.Errorf("longer than %d bytes", longestLine)
	} else if err != nil {
		return l.line + 1, err
	}
	return l.line, io.EOF
}

// jsonError returns an error without Go's words.
func jsonError(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s: %s: must be a %s", kind.Field, kind.Value, wanted(kind.Type.String()))
	case errors.As(err, &kind):
		return fmt.Errorf("%s: must be an object", kind.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: it ends within a value")
	default:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
}

func wanted(kind string) string {
	switch kind {
	case "string":
		return "text"
	case "float64":
		return "number"
	case "[]uint64":
		return "list of numbers"
	default:
		return "whole number"
	}
}

// csvLines reads CSV with a header line.
type csvLines struct {
	in      *csv.Reader
	columns []string
}

// csvColumns are the possible columns of a CSV trace.
var csvColumns = []string{"arrival", "flow", "tier", "input", "output", "max_output"}

func newCSVLines(in io.Reader) *csvLines {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	return &csvLines{in: r}
}

func (l *csvLines) read(e *entry) (int, error) {
	if l.columns == nil {
		head, err := l.in.Read()
		if errors.Is(err, io.EOF) {
			return 1, io.EOF
		}
		if err != nil {
			return 1, csvError(err)
		}
		for _, name := range head {
			name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
			switch {
			case !slices.Contains(csvColumns, name):
				return 1, fmt.Errorf("%q: unknown column; must be one of %s", name, strings.Join(csvColumns, ", "))
			case slices.Contains(l.columns, name):
				return 1, fmt.Errorf("%q: given twice", name)
			}
			l.columns = append(l.columns, name)
		}
	}
	record, err := l.in.Read()
	if errors.Is(err, io.EOF) {
		return 0, io.EOF
	}
	line, _ := l.in.FieldPos(0)
	if err != nil {
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			line = parse.StartLine
		}
		return line, csvError(err)
	}
	var problems []string
	for i, column := range l.columns {
		value := strings.TrimSpace(record[i])
		if err := e.set(column, value); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %q: %v", column, value, err))
		}
	}
	if len(problems) > 0 {
		return line, errors.New(strings.Join(problems, "; "))
	}
	return line, nil
}

// set sets the field of a column.
func (e *entry) set(column, value string) error {
	switch column {
	case "flow":
		e.Flow = value
		return nil
	case "tier":
		e.Tier = value
		return nil
	case "arrival":
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return errors.New("must be a number of seconds")
		}
		e.Arrival = &seconds
		return nil
	}
	if value == "" && column == "max_output" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return errors.New("must be a whole number")
	}
	switch column {
	case "input":
		e.Input = &n
	case "output":
		e.Output = &n
	default:
		e.MaxOutput = n
	}
	return nil
}

func csvError(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return parse.Err
	}
	return err
}
