package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive. One without a source and a text is a directory.
type entry struct {
	name   string // slashes, relative
	mode   int64
	source string // path of the file with its content; empty: text
	text   []byte
}

func (e entry) content() ([]byte, error) {
	if e.source == "" {
		return e.text, nil
	}
	return os.ReadFile(e.source)
}

// pack returns a compressed archive of the entries in their order. All belong to root and have one time.
func pack(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		content, err := e.content()
		if err != nil {
			return nil, err
		}
		if e.source == "" && e.text == nil {
			header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
		}
		header.Size = int64(len(content))
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// archives writes the programs of each platform, with the licence, in a directory that names all of it.
func (r release) archives() error {
	for _, p := range platforms {
		name := "weir-" + r.version + "-" + p.String()
		entries := []entry{
			{name: name, mode: 0o755},
			{name: path.Join(name, "LICENSE"), mode: 0o644, source: filepath.Join(r.source, "LICENSE")},
		}
		for _, program := range programs {
			entries = append(entries, entry{name: path.Join(name, program), mode: 0o755, source: r.program(p, program)})
		}
		text, err := pack(entries, r.commit.time)
		if err != nil {
			return err
		}
		if err := r.file(name+".tar.gz", text); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path of a program.
func (r release) program(p platform, name string) string {
	return filepath.Join(r.dir, p.String(), name)
}

// file writes a file of the release.
func (r release) file(name string, text []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), text, 0o644)
}
