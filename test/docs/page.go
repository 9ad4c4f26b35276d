package docs

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-epp/weir/internal/checkout"
)

// root is the repository's root.
var root = sync.OnceValue(func() string {
	dir, err := checkout.Root()
	if err != nil {
		panic(err)
	}
	return dir
})

// pages returns the paths of the README and all pages of docs in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root(), "docs", "*.md"))
	if err != nil || len(found) < 5 {
		t.Fatalf("pages: %q, %v", found, err)
	}
	names := []string{"README.md"}
	for _, path := range found {
		names = append(names, "docs/"+filepath.Base(path))
	}
	return names
}

// read returns a page's text.
func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is a fenced block.
type block struct {
	line  int    // of its first line of text, from 1
	kind  string // the word after the fence
	text  string
	scene string
}

// act has the blocks that run in one scene: those that follow one scene comment.
type act struct {
	scene  string
	blocks []block
}

// acts returns a page's blocks, by scene, from top to bottom.
func acts(text string) []act {
	all := []act{{scene: "whole"}}
	var open *block
	for i, line := range strings.Split(text, "\n") {
		now := &all[len(all)-1]
		switch {
		case open != nil && strings.TrimSpace(line) == "```":
			now.blocks = append(now.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "```"):
			open = &block{line: i + 2, kind: strings.TrimPrefix(line, "```"), scene: now.scene}
		case strings.HasPrefix(line, "<!-- scene: "):
			name := strings.TrimSuffix(strings.TrimPrefix(line, "<!-- scene: "), " -->")
			all = append(all, act{scene: name})
		}
	}
	return all
}

// step is one command, or several for one shell, with the wanted lines of output.
type step struct {
	line    int
	command string
	want    []string
}

// steps are a block's commands.
func (b block) steps() []step {
	lines := strings.Split(strings.TrimRight(b.text, "\n"), "\n")
	var steps []step
	for i := 0; i < len(lines); i++ {
		at, line := b.line+i, lines[i]
		command, isCommand := strings.CutPrefix(line, "$ ")
		if b.kind == "sh" {
			command, isCommand = line, true
		}
		if !isCommand {
			if len(steps) > 0 {
				steps[len(steps)-1].want = append(steps[len(steps)-1].want, line)
			}
			continue
		}
		for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
			i++
			command = strings.TrimSpace(strings.TrimSuffix(command, `\`)) + " " + strings.TrimSpace(lines[i])
		}
		if strings.TrimSpace(command) != "" && !strings.HasPrefix(command, "#") {
			steps = append(steps, step{line: at, command: command})
		}
	}
	return steps
}
