package eds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces a file atomically: it writes a temporary file in the same directory and renames it, the only change
// that Envoy notices. After an error the file has not changed. A new file is world-readable; a replaced one keeps its
// permissions and its owner. A symbolic link is an error: Envoy would not notice a change of its target. Equal problems
// have equal error texts. Write does not sync the disk: the file's writer writes it again when it starts.
func Write(path string, content []byte) error {
	mode := fs.FileMode(0o644)
	old, err := os.Lstat(path)
	switch {
	case err != nil:
	case old.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: is a symbolic link, behind which Envoy notices no change: name the file itself", path)
	default:
		mode = old.Mode().Perm()
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("%s: cannot create a file in its directory: %w", path, cause(err))
	}
	err = keepOwner(temporary, old)
	if err == nil {
		_, err = temporary.Write(content)
		err = cause(errors.Join(err, temporary.Chmod(mode)))
	}
	if closed := temporary.Close(); err == nil {
		err = cause(closed)
	}
	if err == nil {
		err = cause(os.Rename(temporary.Name(), path))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("%s: cannot be replaced: %w", path, err)
	}
	return nil
}

// keepOwner gives a file the owner and the group of an old one, if there is one and they differ.
func keepOwner(file *os.File, old fs.FileInfo) error {
	now, err := file.Stat()
	if err != nil || old == nil {
		return err
	}
	was, is := old.Sys().(*syscall.Stat_t), now.Sys().(*syscall.Stat_t)
	if was.Uid == is.Uid && was.Gid == is.Gid {
		return nil
	}
	if err := file.Chown(int(was.Uid), int(was.Gid)); err != nil {
		return fmt.Errorf("keeping its owner %d and group %d: %w", was.Uid, was.Gid, cause(err))
	}
	return nil
}

// cause returns an error without the name of the temporary file, which varies.
func cause(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}
