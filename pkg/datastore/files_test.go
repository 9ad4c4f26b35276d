package datastore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"
)

// news is one call of the function that was passed to Follow.
type news struct {
	content string
	err     error
}

// watch follows a file until the end of the test.
func watch(t *testing.T, path string) <-chan news {
	t.Helper()
	files := NewFiles(logr.Discard())
	calls := follow(t, files, path)
	run(t, files)
	return calls
}

func follow(t *testing.T, files *Files, path string) <-chan news {
	t.Helper()
	calls := make(chan news, 100)
	do(t, files.Follow(path, func(content []byte, err error) { calls <- news{string(content), err} }))
	return calls
}

// run runs files until the end of the test.
func run(t *testing.T, files *Files) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- files.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := eventually(t, done, "the end of Run"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// wantContent waits until the content is reported. It ignores earlier calls, since a watcher may see a file in an
// intermediate state.
func wantContent(t *testing.T, calls <-chan news, want string) {
	t.Helper()
	for {
		if got := eventually(t, calls, "waiting for "+want); got.err == nil && got.content == want {
			return
		}
	}
}

func wantFailure(t *testing.T, calls <-chan news, want error) {
	t.Helper()
	for {
		if got := eventually(t, calls, "waiting for "+want.Error()); errors.Is(got.err, want) {
			return
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// swap atomically points a symbolic link to another target, as kubelet does.
func swap(t *testing.T, link, target string) {
	t.Helper()
	do(t, os.Symlink(target, link+"_tmp"))
	do(t, os.Rename(link+"_tmp", link))
}

func TestWatchFile(t *testing.T) {
	t.Run("write in place", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, "one")
		calls := watch(t, path)
		wantContent(t, calls, "one")
		write(t, path, "two")
		wantContent(t, calls, "two")
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		do(t, err)
		_, err = file.WriteString("+")
		do(t, err)
		wantContent(t, calls, "two+")
		do(t, file.Close())
	})
	t.Run("writes without a pause", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, "1000")
		calls := watch(t, path)
		wantContent(t, calls, "1000")
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		do(t, err)
		tick := time.NewTicker(QuietTime / 10)
		defer tick.Stop()
		deadline := time.After(patience)
		for n := 1001; len(calls) == 0; n++ { // read after quietAtMost, though it is never quiet
			_, err := file.WriteAt([]byte(strconv.Itoa(n)), 0)
			do(t, err)
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatal("not seen while it is written")
			}
		}
		do(t, file.Close())
	})
	t.Run("rename over it", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		write(t, path, "one")
		calls := watch(t, path)
		wantContent(t, calls, "one")
		for _, content := range []string{"two", "three"} {
			write(t, path+".new", content)
			do(t, os.Rename(path+".new", path))
			wantContent(t, calls, content)
		}
	})
	t.Run("a ConfigMap's swap of ..data", func(t *testing.T) {
		dir := t.TempDir()
		version := func(name, content string) {
			do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			write(t, filepath.Join(dir, name, "file"), content)
		}
		version("..1", "one")
		do(t, os.Symlink("..1", filepath.Join(dir, "..data")))
		do(t, os.Symlink(filepath.Join("..data", "file"), filepath.Join(dir, "file")))
		calls := watch(t, filepath.Join(dir, "file"))
		wantContent(t, calls, "one")
		version("..2", "two")
		swap(t, filepath.Join(dir, "..data"), "..2")
		do(t, os.RemoveAll(filepath.Join(dir, "..1")))
		wantContent(t, calls, "two")
		version("..3", "three")
		swap(t, filepath.Join(dir, "..data"), "..3")
		wantContent(t, calls, "three")
		write(t, filepath.Join(dir, "..3", "file"), "four") // and a write to the file behind the links
		wantContent(t, calls, "four")
	})
	t.Run("a swapped directory above it", func(t *testing.T) {
		dir, versions := t.TempDir(), t.TempDir()
		for _, name := range []string{"one", "two"} {
			do(t, os.Mkdir(filepath.Join(versions, name), 0o700))
			write(t, filepath.Join(versions, name, "file"), name)
		}
		current := filepath.Join(dir, "current")
		do(t, os.Symlink(filepath.Join(versions, "one"), current))
		calls := watch(t, filepath.Join(current, "file"))
		wantContent(t, calls, "one")
		swap(t, current, filepath.Join(versions, "two"))
		wantContent(t, calls, "two")
	})
	t.Run("deleted, and there again", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, "one")
		calls := watch(t, path)
		wantContent(t, calls, "one")
		do(t, os.Remove(path))
		wantFailure(t, calls, fs.ErrNotExist)
		write(t, path, "one") // the same content counts as a change after an error
		wantContent(t, calls, "one")
	})
	t.Run("its directory deleted, and there again", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		path := filepath.Join(dir, "file")
		do(t, os.MkdirAll(dir, 0o700))
		write(t, path, "one")
		calls := watch(t, path)
		wantContent(t, calls, "one")
		do(t, os.RemoveAll(filepath.Dir(dir)))
		wantFailure(t, calls, fs.ErrNotExist)
		do(t, os.MkdirAll(dir, 0o700))
		write(t, path, "two")
		wantContent(t, calls, "two")
	})
	t.Run("its directory exchanged", func(t *testing.T) {
		root := t.TempDir()
		dir := filepath.Join(root, "a")
		do(t, os.Mkdir(dir, 0o700))
		do(t, os.Mkdir(dir+"2", 0o700))
		write(t, filepath.Join(dir, "file"), "one")
		write(t, filepath.Join(dir+"2", "file"), "two")
		calls := watch(t, filepath.Join(dir, "file"))
		wantContent(t, calls, "one")
		do(t, os.Rename(dir, dir+"1"))
		do(t, os.Rename(dir+"2", dir))
		wantContent(t, calls, "two")
		write(t, filepath.Join(dir, "file"), "three")
		wantContent(t, calls, "three")
	})
	t.Run("its grandparent exchanged", func(t *testing.T) {
		root := t.TempDir()
		for _, name := range []string{"a", "b"} {
			do(t, os.MkdirAll(filepath.Join(root, name, "between", "conf"), 0o700))
			write(t, filepath.Join(root, name, "between", "conf", "file"), name)
		}
		calls := watch(t, filepath.Join(root, "a", "between", "conf", "file"))
		wantContent(t, calls, "a")
		do(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "c")))
		do(t, os.Rename(filepath.Join(root, "b"), filepath.Join(root, "a")))
		wantContent(t, calls, "b")
		write(t, filepath.Join(root, "a", "between", "conf", "file"), "the new one is followed")
		wantContent(t, calls, "the new one is followed")
	})
	t.Run("directories exchanged in one step", func(t *testing.T) {
		root := t.TempDir()
		for _, name := range []string{"a", "b"} {
			do(t, os.MkdirAll(filepath.Join(root, name, "conf"), 0o700))
			write(t, filepath.Join(root, name, "conf", "file"), name)
		}
		calls := watch(t, filepath.Join(root, "a", "conf", "file"))
		wantContent(t, calls, "a")
		do(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "a"), unix.AT_FDCWD, filepath.Join(root, "b"), unix.RENAME_EXCHANGE))
		wantContent(t, calls, "b")
		do(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "a"), unix.AT_FDCWD, filepath.Join(root, "b"), unix.RENAME_EXCHANGE))
		wantContent(t, calls, "a")
	})
	t.Run("missing at the start", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		calls := watch(t, path)
		wantFailure(t, calls, fs.ErrNotExist)
		write(t, path, "one")
		wantContent(t, calls, "one")
	})
	t.Run("too large, not regular", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, strings.Repeat("x", MaxFileBytes))
		calls := watch(t, path)
		wantContent(t, calls, strings.Repeat("x", MaxFileBytes))
		write(t, path, strings.Repeat("x", MaxFileBytes+1))
		for got := (news{}); got.err == nil || !strings.Contains(got.err.Error(), "larger than"); {
			got = eventually(t, calls, "too large") // if this goroutine is slow, it is seen before it has its bytes
		}
		do(t, os.Remove(path))
		do(t, syscall.Mkfifo(path, 0o600))
		for got := (news{}); got.err == nil || !strings.Contains(got.err.Error(), "not a regular file"); {
			got = eventually(t, calls, "a named pipe")
		}
		do(t, os.Remove(path))
		write(t, path, "one")
		wantContent(t, calls, "one")
	})
	t.Run("a circle of links", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		do(t, os.Symlink("file", path))
		calls := watch(t, path)
		wantFailure(t, calls, syscall.ELOOP)
		do(t, os.Remove(path))
		write(t, path, "one")
		wantContent(t, calls, "one")
	})
}

// A write that does not change the content is not reported, and neither is a change of a neighbouring file.
func TestWatchFileIsQuiet(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "one")
	calls := watch(t, path)
	if got := eventually(t, calls, "the first call"); got != (news{content: "one"}) {
		t.Fatalf("%+v", got)
	}
	write(t, path+".new", "one")
	do(t, os.Rename(path+".new", path)) // another file with the same content
	do(t, os.Chmod(path, 0o400))
	write(t, filepath.Join(dir, "beside"), "noise")
	do(t, os.Chmod(path, 0o600))
	write(t, path+".new", "two")
	do(t, os.Rename(path+".new", path))
	if got := eventually(t, calls, "the second call"); got != (news{content: "two"}) {
		t.Fatalf("%+v", got)
	}
}

// Several files share one watch, and each has its own callback. Reread calls all of them, whether the file changed or
// not.
func TestFilesShareOneWatch(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "sub", "two")
	do(t, os.Mkdir(filepath.Dir(two), 0o700))
	write(t, one, "1")
	write(t, two, "2")
	files := NewFiles(logr.Discard())
	first, second := follow(t, files, one), follow(t, files, two)
	var opened atomic.Int32
	files.open = func() (*fsnotify.Watcher, error) { opened.Add(1); return fsnotify.NewWatcher() }
	run(t, files)
	wantContent(t, first, "1")
	wantContent(t, second, "2")
	write(t, two, "3")
	wantContent(t, second, "3")
	write(t, one, "4")
	wantContent(t, first, "4")
	files.Reread()
	if got := eventually(t, first, "read again"); got != (news{content: "4"}) {
		t.Errorf("%+v", got)
	}
	if got := eventually(t, second, "read again"); got != (news{content: "3"}) {
		t.Errorf("%+v", got)
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d watches", n)
	}
}

// If the system grants no watch, Run keeps going: it logs an error, and reads the files at the start and on request.
// Each request tries to open a watch again.
func TestFilesWithoutAWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	said := make(chan string, 100)
	files := NewFiles(funcr.New(func(_, args string) { said <- args }, funcr.Options{}))
	calls := follow(t, files, path)
	var limit atomic.Bool
	limit.Store(true)
	files.open = func() (*fsnotify.Watcher, error) {
		if limit.Load() {
			return nil, syscall.EMFILE
		}
		return fsnotify.NewWatcher()
	}
	run(t, files)
	wantContent(t, calls, "one")
	if line := eventually(t, said, "a line in the log"); !strings.Contains(line, "NOT FOLLOWED") || !strings.Contains(line, path) {
		t.Errorf("logged %s", line)
	}
	if err := files.Err(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("Err: %v", err)
	}
	write(t, path, "two")
	files.Reread()
	wantContent(t, calls, "two")
	limit.Store(false)
	files.Reread()
	wantContent(t, calls, "two")
	if err := files.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
	write(t, path, "three")
	wantContent(t, calls, "three")
}
