// Command mutants asks whether a test notices when one line of the code is wrong.
//
//	go run ./hack/mutants pick -n 300 -seed 1 ./pkg > hack/mutants/mutants.tsv
//	go run ./hack/mutants run [-only pkg/dispatch] [-deep] [-skip TestLong] hack/mutants/mutants.tsv > killed.tsv
//
// A mutant is a line of a function and what it becomes: another operator, a condition turned round, a statement left
// out. It is named by its package, its function and the text of the line, so that it is found again where the code has
// moved. Run builds the tests with the changed line as an overlay, so nothing is written into the tree: first those of
// the mutant's own package, then those of the packages that import it, until one fails.
//
// Run prints the list with one more column: the test that failed, or one of the words below.
package main

import (
	"flag"
	"fmt"
	"os"
)

// Results of mutants that no test killed.
const (
	survived = "-"      // all tests pass
	gone     = "gone"   // the line is no longer there
	broken   = "broken" // it does not build
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("want pick or run")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	switch arguments[0] {
	case "pick":
		n := flags.Int("n", 300, "how many mutants")
		seed := flags.Uint64("seed", 1, "of the choice")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		sites, err := find(flags.Args()...)
		if err != nil {
			return err
		}
		overlay, err := newOverlay()
		if err != nil {
			return err
		}
		defer overlay.remove()
		mutants, err := choose(sites, *n, *seed, overlay.builds)
		if err != nil {
			return err
		}
		return write(os.Stdout, mutants)
	case "run":
		only := flags.String("only", "", "mutants of this package only, such as pkg/stock")
		deep := flags.Bool("deep", false, "ask all packages that import the mutant's, not only two")
		skip := flags.String("skip", "", "tests to leave out, a regular expression as that of go test -skip")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		if flags.NArg() != 1 {
			return fmt.Errorf("run wants one list of mutants, not %d", flags.NArg())
		}
		return try(flags.Arg(0), *only, *skip, *deep)
	default:
		return fmt.Errorf("want pick or run, not %q", arguments[0])
	}
}
