package arguments

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// even is a value of a kind unknown to pflag.
type even struct{ pflag.Value }

func (even) Set(string) error { return errors.New("must be even") }
func (even) String() string   { return "" }
func (even) Type() string     { return "even" }

// The error of each kind of flag has the accepted values. Other errors are unchanged.
func TestExplain(t *testing.T) {
	for argument, want := range map[string]string{
		"--whole=abc":                   `--whole: "abc": must be a whole number`,
		"--whole=99999999999999999999":  `--whole: "99999999999999999999": must be a whole number of at most 18 digits`,
		"--large=1.5":                   `--large: "1.5": must be a whole number`,
		"--large=-99999999999999999999": `--large: "-99999999999999999999": must be a whole number of at most 18 digits`,
		"--seed=x":                      `--seed: "x": must be a whole number from 0 to 18446744073709551615`,
		"--seed=-1":                     `--seed: "-1": must be a whole number from 0 to 18446744073709551615`,
		"--share=half":                  `--share: "half": must be a number`,
		"--share=1e999":                 `--share: "1e999": must be a number below 1e308`,
		"--time=5":                      `--time: "5": must be a duration with a unit, such as 30s or 1m30s`,
		"--switch=maybe":                `--switch: "maybe": must be true or false`,
		"--counts=1,x":                  `--counts: "1,x": must be whole numbers, separated by commas`,
		"--names=a\"b":                  `--names: "a\"b": must be a list separated by commas, with quotes in pairs`,
		"--even=3":                      `--even: "3": must be even`,
		"--none":                        "unknown flag: --none",
		"--name":                        "unknown flag: --name (did you mean --names?)",
		"--elsewhere":                   "unknown flag: --elsewhere",
		"-x":                            "unknown shorthand flag: 'x' in -x",
		"--time":                        "flag needs an argument: --time",
		"--help":                        pflag.ErrHelp.Error(),
	} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		set.SetOutput(io.Discard)
		set.Int("whole", 0, "")
		set.Int64("large", 0, "")
		set.Uint64("seed", 0, "")
		set.Float64("share", 0, "")
		set.Duration("time", time.Second, "")
		set.Bool("switch", false, "")
		set.IntSlice("counts", nil, "")
		set.StringSlice("names", nil, "")
		set.Var(even{}, "even", "")
		if err := Explain(set, set.Parse([]string{argument})); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", argument, err, want)
		}
	}
	if err := Explain(nil, nil); err != nil {
		t.Error(err)
	}
	if !errors.Is(Explain(nil, pflag.ErrHelp), pflag.ErrHelp) {
		t.Error("a request for help is no longer recognised")
	}
}

// A bool flag takes no value from the next argument, and the error has the right spelling.
func TestUnexpected(t *testing.T) {
	set := pflag.NewFlagSet("x", pflag.ContinueOnError)
	set.Bool("secure", true, "")
	set.Int("number", 0, "")
	for want, args := range map[string][]string{
		"--secure false: write --secure=false": {"--number", "1", "--secure", "false"},
		`"now": only flags are allowed`:        {"now", "--secure"},
		`"a": only flags are allowed`:          {"--number", "1", "a"},
		`"b": only flags are allowed`:          {"--secure=true", "b"},
	} {
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := Unexpected(set, set.Arg(0), args).Error(); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}
