package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-epp/weir/internal/config"
)

// importers convert another system's configuration to a document, with notes for the operator.
var importers = map[string]func(text []byte) (config.Document, []string, error){
	"smg": config.ImportSMG,
}

// importConfig prints another system's configuration as ours on stdout, and the notes on stderr.
func importConfig(from, file string, stdout, stderr io.Writer) int {
	text, err := readInput(file)
	if err != nil {
		return failed(stderr, err)
	}
	d, notes, err := importers[from](text)
	if err != nil {
		return failed(stderr, fmt.Errorf("%s: %w", file, err))
	}
	overlay, err := d.MarshalOverlay()
	if err != nil {
		return failed(stderr, err)
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(stderr, "%s: note: %s\n", file, printableLine(note))
	}
	_, _ = stdout.Write(overlay)
	return 0
}

// printableLine returns a note as a single printable line, whatever names the file contains.
func printableLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
