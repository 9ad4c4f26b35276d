package datastore

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the largest number of symbolic links on a path.
const maxLinks = 40

// trail is the path to a file: the names and directories to watch so that no change of the file's content or path is
// missed.
type trail struct {
	// names are the points where the path can change: each symbolic link on it, the file itself, or the first component
	// that does not exist.
	names map[string]bool
	// dirs are the directories that contain names, and those in passed.
	dirs map[string]bool
	// passed are the other directories on the path; each may be replaced as a whole. A failure to watch one of these is
	// tolerated.
	passed map[string]bool
}

// trailTo follows the absolute path, link by link.
func trailTo(path string) trail {
	t := trail{names: map[string]bool{}, dirs: map[string]bool{}, passed: map[string]bool{}}
	defer func() {
		for dir := range t.dirs {
			delete(t.passed, dir) // it contains a name
		}
		for dir := range t.passed {
			t.dirs[dir] = true
		}
	}()
	at, rest, links := string(filepath.Separator), parts(path), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			t.add(next)
			return t
		case info.Mode()&os.ModeSymlink != 0:
			t.add(next)
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return t
			}
			if filepath.IsAbs(target) {
				at = string(filepath.Separator)
			}
			rest = append(parts(target), rest...)
		case len(rest) == 0:
			t.add(next)
		default:
			at = next
			t.passed[at] = true
		}
	}
	return t
}

func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

func (t trail) add(name string) {
	t.names[name] = true
	t.dirs[filepath.Dir(name)] = true
}

// concerns reports whether an event with this name may be a change of the path or the content. A directory on the path
// reports its own removal under its own name.
func (t trail) concerns(name string) bool { return t.names[name] || t.dirs[name] }

func (t trail) equal(o trail) bool { return maps.Equal(t.names, o.names) && maps.Equal(t.dirs, o.dirs) }
