package eds

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file in one step: it writes a temporary file in the same directory and renames it, the only change of
// a file that Envoy notices. After an error the file is as it was. A new file can be read by everybody, a replaced one
// keeps its permissions.
func Write(path string, content []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
