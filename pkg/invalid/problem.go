package invalid

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Problem is one problem of one field.
type Problem struct {
	// Path leads to the field.
	Path Path
	// Value is the field's value; nil if the wanted text names it.
	Value any
	// Known lists the words that the field accepts, if Value is none of them.
	Known []string

	format string
	args   []any
}

// Shown is a Value shown in messages without quotes: "33 tiers", "[]".
type Shown string

// Found returns the value's text in messages, empty if the wanted text names it.
func (p Problem) Found() string {
	if p.Value == nil {
		return ""
	}
	return Text(p.Value)
}

// Want returns the field's requirement, such as "must be at least 1". The function names the other fields in the text.
func (p Problem) Want(name func(Path) string) string {
	args := make([]any, len(p.args))
	for i, arg := range p.args {
		switch arg := arg.(type) {
		case Path:
			args[i] = name(arg)
		case time.Duration:
			args[i] = Text(arg)
		default:
			args[i] = arg
		}
	}
	return fmt.Sprintf(p.format, args...)
}

// Error implements error, with the names of Go fields: "Tiers[3].QueueSize: -2: must be at least 0".
func (p Problem) Error() string { return p.Text(Path.String) }

// Text returns the whole message, with all fields named by the function: "field: value: what is wanted".
func (p Problem) Text(name func(Path) string) string {
	text := name(p.Path) + ": "
	if found := p.Found(); found != "" {
		text += found + ": "
	}
	return text + p.Want(name)
}

// Text returns a value's text in messages: text in quotes, a duration without its zero parts (5m for 5m0s).
func Text(value any) string {
	switch v := value.(type) {
	case Shown:
		return string(v)
	case string:
		return strconv.Quote(v)
	case time.Duration:
		text := v.String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	default:
		return fmt.Sprint(v)
	}
}

// Problems lists all problems of a Config, in the order of the checks. A Validate fills one and returns its Err.
type Problems []Problem

// Add adds a problem. The format and its arguments state the permitted values; an argument that is a Path stands for
// the name of that field.
func (ps *Problems) Add(at Path, value any, format string, args ...any) {
	*ps = append(*ps, Problem{Path: at, Value: value, format: format, args: args})
}

// Under adds the problems of a part, which the Config holds at the path. A nil error adds none.
func (ps *Problems) Under(at Path, err error) {
	for _, p := range Of(err) {
		p.Path = at.At(p.Path...)
		args := make([]any, len(p.args))
		for i, arg := range p.args {
			if other, ok := arg.(Path); ok {
				arg = at.At(other...)
			}
			args[i] = arg
		}
		p.args = args
		*ps = append(*ps, p)
	}
}

// Of returns the problems of a Validate's error, wrapped or not; none for nil. It panics for any other error, which
// would be lost.
func Of(err error) Problems {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if ps, ok := inner.(Problems); ok { //nolint:errorlint // what several errors are joined to is not searched
			return ps
		}
	}
	if err != nil {
		panic(fmt.Sprintf("invalid: %v is no error of a Validate", err))
	}
	return nil
}

// Err returns the problems as an error, nil if there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Error implements error, one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single problems, for errors.As.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}
