// Command walk shows the way of a request through the files of a package, as one test takes it.
//
//	go run ./hack/walk ./pkg/extproc Process 'TestStates/BUFFERED,_the_body_is_needed'
//
// The walk begins with the first call of the function, here Process. It prints the files in the order in which the test
// enters them, a line for each entry from another file, and then the numbers of files, entries and returns. A return is
// an entry into a file that the test has left before. The fewer, the fewer files a reader of the walk has open
// (ADR 0130).
//
// Walk builds the package with a print at the beginning of each function as an overlay, so it writes nothing into the
// tree.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mark begins the line that a function prints.
const mark = "walk: "

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "walk: want a package's directory, a function to begin with, and a test as go test -run takes it")
		os.Exit(2)
	}
	if err := walk(os.Stdout, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

// walk runs a test of the package in dir and prints its walk from the first call of a function on.
func walk(out io.Writer, dir, begin, test string) error {
	scratch, err := os.MkdirTemp("", "walk")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	overlay, err := printing(dir, scratch)
	if err != nil {
		return err
	}
	command := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-v", "-run", test, dir)
	printed, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, printed)
	}
	entries := entries(printed, begin)
	if len(entries) == 0 {
		return fmt.Errorf("%s calls no %s in %s", test, begin, dir)
	}
	left := map[string]bool{}
	returns := 0
	for _, file := range entries {
		fmt.Fprintln(out, file)
		if left[file] {
			returns++
		}
		left[file] = true
	}
	_, err = fmt.Fprintf(out, "%d files, %d entries, %d returns\n", len(left), len(entries), returns)
	return err
}

// entries returns the files entered from another one, from the first call of a function on.
func entries(printed []byte, begin string) []string {
	var files []string
	for lines := bufio.NewScanner(bytes.NewReader(printed)); lines.Scan(); {
		call, is := strings.CutPrefix(lines.Text(), mark)
		file, function, _ := strings.Cut(call, " ")
		begun := len(files) > 0
		if is && (begun && files[len(files)-1] != file || !begun && function == begin) {
			files = append(files, file)
		}
	}
	return files
}

// printing writes the package's files, each function with its print, and returns the go command's overlay file.
func printing(dir, scratch string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := withPrints(path)
		if err != nil {
			return "", err
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[absolute] = filepath.Join(scratch, filepath.Base(path))
		if err := os.WriteFile(replace[absolute], text, 0o600); err != nil {
			return "", err
		}
	}
	overlay := filepath.Join(scratch, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// withPrints returns a file in which each function first prints the file's name and its own.
func withPrints(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []byte
	from := 0
	for _, d := range tree.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}
		at := files.Position(f.Body.Lbrace).Offset + 1
		out = append(append(out, text[from:at]...), fmt.Sprintf(" println(%q); ", mark+filepath.Base(path)+" "+f.Name.Name)...)
		from = at
	}
	return append(out, text[from:]...), nil
}
