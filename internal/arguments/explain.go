package arguments

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/spelling"
)

// Explain rewords an error of the set's Parse about a value or an unknown flag, and returns any other error unchanged.
func Explain(set *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		set.VisitAll(func(flag *pflag.Flag) { names = append(names, "--"+flag.Name) })
		name := "--" + unknown.GetSpecifiedName()
		suggestion := spelling.Suggest(name, names)
		if suggestion == "" {
			longer := slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, name+"-") })
			suggestion = spelling.Either(longer)
		}
		return fmt.Errorf("%w%s", err, suggestion)
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	return fmt.Errorf("--%s: %q: %s", flag.Name, invalid.GetValue(), allowed(flag.Value.Type(), invalid.Unwrap()))
}

// Unexpected returns the problem of a non-flag argument, given all arguments. pflag does not take the argument after a
// bool flag as its value.
func Unexpected(set *pflag.FlagSet, argument string, all []string) error {
	if i := slices.Index(all, argument); i > 0 {
		name := strings.TrimPrefix(all[i-1], "--")
		if flag := set.Lookup(name); flag != nil && name != all[i-1] && flag.Value.Type() == "bool" {
			return fmt.Errorf("--%s %s: write --%s=%s", name, argument, name, argument)
		}
	}
	return fmt.Errorf("%q: only flags are allowed", argument)
}

// allowed describes the values accepted by one of pflag's own kinds of flags. Other kinds describe them in their
// errors.
func allowed(kind string, cause error) string {
	tooLarge := errors.Is(cause, strconv.ErrRange)
	switch kind {
	case "int", "int64":
		if tooLarge {
			return "must be a whole number of at most 18 digits"
		}
		return "must be a whole number"
	case "uint64":
		return fmt.Sprintf("must be a whole number from 0 to %d", uint64(math.MaxUint64))
	case "float64":
		if tooLarge {
			return "must be a number below 1e308"
		}
		return "must be a number"
	case "duration":
		return "must be a duration with a unit, such as 30s or 1m30s"
	case "bool":
		return "must be true or false"
	case "intSlice":
		return "must be whole numbers, separated by commas"
	case "stringSlice":
		return "must be a list separated by commas, with quotes in pairs"
	default:
		return cause.Error()
	}
}
