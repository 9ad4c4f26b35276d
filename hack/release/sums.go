package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the sums of all other files of a release.
const sumsFile = "SHA256SUMS"

func (r release) sums() error {
	text, err := sumsOf(r.dir)
	if err != nil {
		return err
	}
	return r.file(sumsFile, []byte(text))
}

// sumsOf returns a line for each file, as sha256sum writes and checks them, in the order of their names.
func sumsOf(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || name == sumsFile {
			return err
		}
		sum, err := sumOf(file)
		if err == nil {
			fmt.Fprintf(&b, "%x  %s\n", sum, filepath.ToSlash(name))
		}
		return err
	})
	return b.String(), err
}

func sumOf(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
