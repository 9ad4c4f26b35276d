package collect

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// manifest lists the content of a tar, and missing files with the reasons.
type manifest struct {
	At    time.Time `json:"at"`
	Weir  string    `json:"weir"` // the version that has made it
	Names bool      `json:"flowNames"`
	Files []File    `json:"files"`
}

// Write writes the files as a tar, manifest.json first.
func Write(out io.Writer, files []File, names bool, version string, now time.Time) error {
	text, err := json.MarshalIndent(manifest{At: now.UTC(), Weir: version, Names: names, Files: files}, "", "  ")
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	archive := tar.NewWriter(out)
	add := func(name string, text []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: "weir-collect/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: now}); err != nil {
			return fmt.Errorf("collect: writing: %w", err)
		}
		if _, err := archive.Write(text); err != nil {
			return fmt.Errorf("collect: writing: %w", err)
		}
		return nil
	}
	if err := add("manifest.json", append(text, '\n')); err != nil {
		return err
	}
	for i := range files {
		if files[i].Err != "" {
			continue
		}
		if err := add(files[i].Name, files[i].text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("collect: writing: %w", err)
	}
	return nil
}
