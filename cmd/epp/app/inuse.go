package app

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/printable"
)

// configuration is the configuration in use, with the remarks about it. It is safe for concurrent use.
type configuration struct {
	source string // its source, for people
	hashed bool   // identities are shown as hashes (--hash-flow-keys)

	mu       sync.Mutex
	document config.Document
	since    time.Time // when it came into use
	reloads  int       // how often it was changed since the start
	refused  error     // the problems of the newest one; nil: it is in use
}

// current returns the document in use.
func (c *configuration) current() config.Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.document
}

// use replaces the document.
func (c *configuration) use(d config.Document, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		c.reloads++
	}
	c.document, c.since, c.refused = d, now, nil
}

// refuse records the problems of the newest document; nil: it is the one in use.
func (c *configuration) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = err
}

// problem returns what is wrong with a newer document that is invalid, on one line: the first problem, and how many more there
// are; "" if there is none.
func (c *configuration) problem() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(c.refused.Error()), "\n")
	if len(lines) > 1 && strings.HasSuffix(lines[0], ":") { // a heading
		lines = lines[1:]
	}
	text := strings.TrimSpace(lines[0])
	text = text[:min(len(text), problemLength)]
	if more := len(lines) - 1; more > 0 {
		text += fmt.Sprintf(" and %s more, see /debug/config", counted(more, "line"))
	}
	return text
}

// problemLength bounds the text of one problem, in bytes.
const problemLength = 300

// summary returns the source and the age on one line, and whether there is a newer, invalid document.
func (c *configuration) summary(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf("%s, in use for %s, changed %s", c.source, now.Sub(c.since).Round(time.Second), counted(c.reloads, "time"))
	if c.refused != nil {
		text += "; THE NEWEST IS INVALID and not in use, see /debug/config"
	}
	return text
}

// page returns the whole document as YAML, below comments with its source, its age, the problems of a newer document,
// and its warnings.
func (c *configuration) page() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s, in use since %s, changed %s\n", c.source, c.since.UTC().Format(time.RFC3339), counted(c.reloads, "time"))
	if c.refused != nil {
		b.WriteString("# THE NEWEST CONFIGURATION IS INVALID and not in use:\n")
		comment(&b, c.refused.Error())
	}
	shown, warnings := shown(c.document, c.hashed)
	for _, w := range warnings {
		comment(&b, "warning: "+w.Error())
	}
	text, err := shown.Marshal()
	if err != nil {
		return nil, fmt.Errorf("app: showing the configuration: %w", err)
	}
	b.Write(text)
	return b.Bytes(), nil
}

// comment writes text as YAML comments. Names in it may contain any character of the file.
func comment(b *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "#   %s\n", strings.Map(blank, strings.TrimRight(line, "\n")))
	}
}

// blank returns a blank for an unprintable character.
func blank(r rune) rune {
	if r == 0xfeff || printable.Commands(r) {
		return ' '
	}
	return r
}
