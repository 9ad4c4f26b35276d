package arguments

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Problems collects the problems of arguments.
type Problems []error

// Add adds a problem of a flag.
func (ps *Problems) Add(flag, format string, args ...any) {
	*ps = append(*ps, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
}

// Err returns all problems; nil: there is none.
func (ps *Problems) Err() error { return errors.Join(*ps...) }

// Within requires a flag's value from least to most, both included.
func Within[T cmp.Ordered](ps *Problems, flag string, value, least, most T) {
	if !(value >= least && value <= most) { // NaN, too
		ps.Add(flag, "%s: must be from %s to %s", invalid.Text(value), invalid.Text(least), invalid.Text(most))
	}
}
