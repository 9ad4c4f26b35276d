package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-epp/weir/internal/config"
)

// importers make a document of another system's configuration, with notes for its operator.
var importers = map[string]func(text []byte) (config.Document, []string, error){
	"smg": config.ImportSMG,
}

// importConfig prints another system's configuration as ours on stdout, and what there is to know of it on stderr.
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

// printableLine is a note in one line, whatever names the file has in it.
func printableLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
