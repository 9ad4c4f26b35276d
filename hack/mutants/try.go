package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// patience is how long the tests of one package may take with a mutant. One that hangs is killed by its test's timeout.
const patience = 4 * time.Minute

// write prints mutants as a list, one on a line.
func write(out io.Writer, mutants []mutant) error {
	for _, m := range mutants {
		if _, err := fmt.Fprintln(out, m); err != nil {
			return err
		}
	}
	return nil
}

func (m mutant) String() string {
	return strings.Join([]string{m.dir, m.function, strconv.Itoa(m.nth), m.old, m.new}, "\t")
}

// entry is a line of a list: a mutant, the test that killed it or the word in its place, and a remark.
type entry struct {
	mutant
	killer, remark string // "" if the list has not got them
}

// read parses a list.
func read(in io.Reader) ([]entry, error) {
	var all []entry
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) < 5 {
			return nil, fmt.Errorf("line %d: %d columns, want at least 5", number, len(fields))
		}
		nth, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("line %d: column 3: %w", number, err)
		}
		e := entry{mutant: mutant{dir: fields[0], function: fields[1], nth: nth, old: fields[3], new: fields[4]}}
		if len(fields) > 5 {
			e.killer = fields[5]
		}
		if len(fields) > 6 {
			e.remark = fields[6]
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

// show prints where each mutant is now.
func show(out io.Writer, entries []entry, sites []site) error {
	for _, e := range entries {
		now := gone
		if at, ok := locate(sites, e.mutant); ok {
			now = fmt.Sprintf("%s:%d", at.file, at.line+1)
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s => %s\n", now, e.function, e.old, e.new); err != nil {
			return err
		}
	}
	return nil
}

// try runs the tests with each mutant of the list and prints which test failed.
func try(entries []entry, sites []site, only, skip string, deep bool) error {
	overlay, err := newOverlay()
	if err != nil {
		return err
	}
	defer overlay.remove()
	importers, err := importers()
	if err != nil {
		return err
	}
	kinds := map[string]int{}
	for _, e := range entries {
		if only != "" && e.dir != only {
			continue
		}
		verdict := gone
		if at, ok := locate(sites, e.mutant); ok {
			packages := append([]string{"./" + filepath.Dir(at.file)}, importers["./"+filepath.Dir(at.file)]...)
			if !deep && len(packages) > 3 {
				packages = packages[:3]
			}
			if verdict, err = overlay.verdict(e, at, skip, packages); err != nil {
				return err
			}
		}
		switch verdict {
		case survived, gone, broken:
			kinds[verdict]++
		default:
			kinds["killed"]++
		}
		fmt.Println(strings.TrimSuffix(fmt.Sprintf("%s\t%s\t%s", e.mutant, verdict, e.remark), "\t"))
	}
	fmt.Fprintf(os.Stderr, "%d killed, %d survived, %d gone, %d do not build\n",
		kinds["killed"], kinds[survived], kinds[gone], kinds[broken])
	return nil
}

// locate finds the mutant's line: in its function, else the only such line in a function of that name, else the only
// such line anywhere.
func locate(sites []site, m mutant) (place, bool) {
	same := func(accept func(site) bool) (place, bool) {
		var found []place
		for _, s := range sites {
			if s.old == m.old && s.new == m.new && accept(s) {
				found = append(found, s.place)
			}
		}
		if len(found) == 0 || found[0] != found[len(found)-1] {
			return place{}, false
		}
		return found[0], true
	}
	if at, ok := same(func(s site) bool { return s.mutant == m }); ok {
		return at, true
	}
	_, method, _ := strings.Cut("."+m.function, ".")
	if at, ok := same(func(s site) bool { return strings.HasSuffix("."+s.function, "."+method) }); ok {
		return at, true
	}
	return same(func(site) bool { return true })
}

var (
	failed    = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	panicked  = regexp.MustCompile(`(?m)^(?:panic: test timed out|panic: |fatal error: |signal: killed$)`)
	buildFail = regexp.MustCompile(`(?m)\[(?:build|setup) failed\]`)
)

// overlay shows the go command one file other than it is.
type overlay struct{ dir string }

func newOverlay() (*overlay, error) {
	dir, err := os.MkdirTemp("", "mutants")
	return &overlay{dir}, err
}

func (o *overlay) remove() { os.RemoveAll(o.dir) }

// list is the file that the go command's -overlay names.
func (o *overlay) list() string { return filepath.Join(o.dir, "overlay.json") }

// change puts a line in the place of another.
func (o *overlay) change(at place, line string) error {
	source, err := os.ReadFile(at.file)
	if err != nil {
		return err
	}
	lines := bytes.Split(source, []byte("\n"))
	lines[at.line] = []byte(line)
	changed := filepath.Join(o.dir, "changed.go")
	if err := os.WriteFile(changed, bytes.Join(lines, []byte("\n")), 0o600); err != nil {
		return err
	}
	original, err := filepath.Abs(at.file)
	if err != nil {
		return err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return err
	}
	return os.WriteFile(o.list(), list, 0o600)
}

func (o *overlay) builds(s site) (bool, error) {
	if err := o.change(s.place, s.new); err != nil {
		return false, err
	}
	err := exec.Command("go", "build", "-overlay", o.list(), "./"+filepath.Dir(s.file)).Run()
	if _, refused := errors.AsType[*exec.ExitError](err); refused {
		return false, nil
	}
	return err == nil, err
}

// verdict is the test that fails with the mutant, or survived or broken. It asks the test that killed it last, then one
// package after the other.
func (o *overlay) verdict(e entry, at place, skip string, packages []string) (string, error) {
	if err := o.change(at, e.new); err != nil {
		return "", err
	}
	if p, test, ok := strings.Cut(e.killer, ":"); ok && !strings.Contains(test, " ") {
		output, err := o.test("./"+p, "-run", "^"+test+"$")
		if found := failed.FindSubmatch(output); err != nil && found != nil && string(found[1]) == test {
			return e.killer, nil
		}
	}
	for _, p := range packages {
		output, err := o.test(p, "-skip", skip)
		if err == nil {
			continue
		}
		switch found := failed.FindSubmatch(output); {
		case buildFail.Match(output):
			return broken, nil
		case found != nil:
			return strings.TrimPrefix(p, "./") + ":" + string(found[1]), nil
		case panicked.Match(output):
			return strings.TrimPrefix(p, "./") + ":panic or timeout", nil
		default:
			return "", fmt.Errorf("%s: %w:\n%s", p, err, output)
		}
	}
	return survived, nil
}

func (o *overlay) test(directory string, choice ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Minute)
	defer cancel()
	arguments := []string{"test", "-overlay", o.list(), "-vet=off", "-failfast", "-timeout", patience.String()}
	command := exec.CommandContext(ctx, "go", append(append(arguments, choice...), directory)...)
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return append(output, "\npanic: test timed out"...), err
	}
	return output, err
}

// importers lists for each package directory those whose code or tests import it, the nearest in the tree first.
func importers() (map[string][]string, error) {
	output, err := exec.Command("go", "list", "-f",
		`{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./pkg/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	module, err := exec.Command("go", "list", "-m").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	prefix := strings.TrimSpace(string(module)) + "/"
	all := map[string][]string{}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		for _, imported := range fields[1:] {
			if rest, ok := strings.CutPrefix(imported, prefix); ok {
				importer := "./" + strings.TrimPrefix(fields[0], prefix)
				if list := all["./"+rest]; len(list) == 0 || list[len(list)-1] != importer {
					all["./"+rest] = append(list, importer)
				}
			}
		}
	}
	return all, nil
}
