package loadgen

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The figure of two runs is a picture, PNG or SVG by the file's ending, with the words that it was given; other endings
// are errors and leave no file.
func TestFigureIsSaved(t *testing.T) {
	dir := t.TempDir()
	saved := func(name string) []byte {
		t.Helper()
		if err := syntheticFigure().Save(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	picture, err := png.Decode(bytes.NewReader(saved("figure.png")))
	if err != nil || picture.Bounds().Dx() < 500 {
		t.Errorf("%v, %v", picture.Bounds(), err)
	}
	svg := string(saved("figure.svg"))
	if !strings.Contains(svg, "<svg") || !strings.Contains(svg, "</svg>") {
		t.Errorf("no SVG: %.200s", svg)
	}
	if err := syntheticFigure().Save(filepath.Join(dir, "figure.txt")); err == nil {
		t.Error("a figure is saved as text")
	}
	if _, err := os.Stat(filepath.Join(dir, "figure.txt")); err == nil {
		t.Error("it left a file")
	}
}
