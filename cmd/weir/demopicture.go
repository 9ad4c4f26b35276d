package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"

	"github.com/weir-epp/weir/internal/loadgen"
)

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
