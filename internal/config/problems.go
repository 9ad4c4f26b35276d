package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with one field.
type Problem struct {
	// Path is the field, such as "models[1].targets[0].weight"; empty for the document as a whole.
	Path string
	// Found is the value as messages show it; empty if Message shows it.
	Found string
	// Message states the allowed values.
	Message string
	// Line is the line in the file, from 1; 0 when the value does not come from a line of the file.
	Line int
}

// Error implements error: "path: found: message (line n)".
func (p Problem) Error() string {
	text := p.Message
	if p.Found != "" {
		text = p.Found + ": " + text
	}
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line > 0 {
		text += fmt.Sprintf(" (line %d)", p.Line)
	}
	return text
}

// Problems lists everything that is wrong with a configuration: by line of the file, then in the order of the checks.
type Problems []Problem

// Error implements error, one line for each problem.
func (ps Problems) Error() string {
	var b strings.Builder
	b.WriteString("invalid")
	if len(ps) == 1 {
		b.WriteString(": " + ps[0].Error())
		return b.String()
	}
	fmt.Fprintf(&b, ", %d problems:", len(ps))
	for _, p := range ps {
		b.WriteString("\n  " + p.Error())
	}
	return b.String()
}

// Unwrap gives the single problems to errors.As and errors.Is.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Add adds a problem: its path, the value found, and the allowed ones.
func (ps *Problems) Add(path string, value any, format string, args ...any) {
	ps.add(path, value, format, args...)
}

// Located returns the problems by the line that the text has for their paths, each path once, as an error; nil if there are
// none.
func (ps Problems) Located(lines map[string]int) error { return ps.locate(lines).err() }

// err returns the problems as an error, nil if there are none: an empty Problems in an error would not be nil.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// add adds a problem: its path, the value found, and the allowed ones.
func (ps *Problems) add(path string, value any, format string, args ...any) {
	found := fmt.Sprint(value)
	if text, ok := value.(string); ok {
		found = strconv.Quote(text)
	}
	*ps = append(*ps, Problem{Path: path, Found: found, Message: fmt.Sprintf(format, args...)})
}

// locate sets the lines of the problems that the file has a line for, and drops all but the first problem of each path.
func (ps Problems) locate(lines map[string]int) Problems {
	seen := make(map[string]bool, len(ps))
	kept := ps[:0]
	for _, p := range ps {
		if p.Path != "" && seen[p.Path] {
			continue
		}
		seen[p.Path] = true
		if p.Line == 0 {
			p.Line = lines[p.Path]
		}
		kept = append(kept, p)
	}
	slices.SortStableFunc(kept, func(a, b Problem) int { return cmp.Compare(a.rank(), b.rank()) })
	return kept
}

// rank orders problems by line; those without a line come last.
func (p Problem) rank() int {
	if p.Line == 0 {
		return math.MaxInt
	}
	return p.Line
}
