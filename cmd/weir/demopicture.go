package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/weir-epp/weir/internal/loadgen"
)

// savePictures writes the figure as an SVG and, if asked to, as a PNG, under a name without its ending, and says what it
// shows.
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

// savePicture writes the figure as an SVG that a page can hold: without the fonts, which are ten times its size.
func savePicture(figure *loadgen.Figure, file string) error {
	var drawn bytes.Buffer
	if err := figure.Write(&drawn, "svg"); err != nil {
		return err
	}
	if err := os.WriteFile(file, systemFonts(drawn.Bytes()), 0o644); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return nil
}

var (
	embeddedFonts = regexp.MustCompile(`(?s)<defs>\s*<style>.*?</style>\s*</defs>\s*`)
	fontFamily    = []byte("font-family:Liberation Sans;")
	fontFamilies  = []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
)

// systemFonts lets an SVG use the reader's own fonts: Arial has the measures of Liberation Sans, and Helvetica nearly.
func systemFonts(svg []byte) []byte {
	return bytes.ReplaceAll(embeddedFonts.ReplaceAll(svg, nil), fontFamily, fontFamilies)
}
