// Command mutants asks whether a test notices when one line of the code is wrong.
//
//	go run ./hack/mutants pick -n 300 -seed 1 ./pkg > hack/mutants/mutants.tsv
//	go run ./hack/mutants run [-only pkg/dispatch] [-deep] [-skip TestLong] hack/mutants/mutants.tsv > killed.tsv
//	go run ./hack/mutants where hack/mutants/mutants.tsv
//
// A mutant is a line of a function and what it becomes: another operator, a condition turned round, a statement left
// out. It is named by its package, its function and the text of the line, so that it is found again where the code has
// moved. Run builds the tests with the changed line as an overlay, so nothing is written into the tree: first those of
// the mutant's own package, then those of the packages that import it, until one fails.
//
// Run prints the list with two more columns: the test that failed, or one of the words below; and the remark that the
// list had. Where the list names a test already, run asks that one first, so that a list is repeated in a tenth of the
// time that it took. Where prints the present file and line of each mutant, or gone.
//
// mutants.tsv beside this file has the test that kills each of 359 mutants: those of commit d2cc98d (pick -n 320 -seed 1
// ./pkg) whose lines are still there, some in new words, and others that a test had missed. A remark tells a surviving
// mutant that changes nothing for a caller ("equivalent") from a missing test. This command shows the mutants that were
// killed and no longer are, in about an hour:
//
//	go run ./hack/mutants run hack/mutants/mutants.tsv >now.tsv; diff hack/mutants/mutants.tsv now.tsv
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
		return fmt.Errorf("want pick, run or where")
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
		return repeat(flags, func(entries []entry, sites []site) error { return try(entries, sites, *only, *skip, *deep) })
	case "where":
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		return repeat(flags, func(entries []entry, sites []site) error { return show(os.Stdout, entries, sites) })
	default:
		return fmt.Errorf("want pick, run or where, not %q", arguments[0])
	}
}

// repeat calls f with the entries of the list that the arguments name, and the sites of today's tree.
func repeat(flags *flag.FlagSet, f func([]entry, []site) error) error {
	if flags.NArg() != 1 {
		return fmt.Errorf("%s wants one list of mutants, not %d", flags.Name(), flags.NArg())
	}
	list := flags.Arg(0)
	file, err := os.Open(list)
	if err != nil {
		return err
	}
	defer file.Close()
	entries, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	sites, err := find("pkg", "internal", "cmd")
	if err != nil {
		return err
	}
	return f(entries, sites)
}
