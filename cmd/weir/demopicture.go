package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/shown"
)

// checkWritable checks that savePictures can write the pictures with these names, which have no extension. It changes
// no file and leaves none behind.
func checkWritable(names []string, png bool) error {
	endings := []string{".svg"}
	if png {
		endings = append(endings, ".png")
	}
	for _, name := range names {
		for _, ending := range endings {
			if err := tryToOpen(name + ending); err != nil {
				return fmt.Errorf("picture: %w", err)
			}
		}
	}
	return nil
}

// tryToOpen opens a file for writing without changing it. If there is none, it creates one and removes it again.
func tryToOpen(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(name))
}

// savePictures writes the figure as an SVG and optionally as a PNG, under a name without extension, and prints where it
// is.
func savePictures(figure *loadgen.Figure, shows, name string, png bool, w io.Writer) error {
	if err := savePicture(figure, name+".svg"); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "The picture of %s is %s.svg\n", shows, name)
	if !png {
		return nil
	}
	if err := figure.Save(name + ".png"); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "The picture of %s is %s.png\n", shows, name)
	return nil
}

// savePicture writes the figure as an SVG without embedded fonts, which would be ten times its size.
func savePicture(figure *loadgen.Figure, file string) error {
	var drawn bytes.Buffer
	if err := figure.Write(&drawn, "svg"); err != nil {
		return err
	}
	if err := os.WriteFile(file, shown.SystemFonts(drawn.Bytes()), 0o644); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return nil
}
