package body

import (
	"bufio"
	"bytes"
	"fmt"
	"mime"
	"net/textproto"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxParts is the largest number of parts of a form. Starlette refuses more than 1,000 fields or 1,000 files.
const MaxParts = 2000

// maxBoundary is the longest boundary, in bytes (RFC 2046, section 5.1.1).
const maxBoundary = 70

// Form is the error of a body that is not a multipart form.
type Form struct {
	// Part is the number of the part, from 1, or 0 for the form as a whole.
	Part int
	// Problem describes the problem there.
	Problem string
}

// Error implements error.
func (e *Form) Error() string {
	if e.Part == 0 {
		return "invalid multipart form: " + e.Problem
	}
	return fmt.Sprintf("invalid multipart form, part %d: %s", e.Part, e.Problem)
}

// IsForm reports whether a content type is multipart/form-data.
func IsForm(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "multipart/form-data")
}

// ScanForm sets f to the field "model" of a multipart form with the given content type, with its files counted as media. The
// other fields are those of an empty body. As in Starlette and FastAPI, the last of several models counts, and a file
// is not a string.
//
// It accepts only forms with the same meaning for mime/multipart and Starlette: lines end in CRLF; there is nothing
// before the first boundary, between a boundary and the end of its line, or after the last boundary; each part has one
// Content-Disposition with a plain name; and the form is closed. The error is a *Form.
func (f *Fields) ScanForm(b []byte, contentType string) error {
	f.begin()
	boundary, err := boundaryOf(contentType)
	if err != nil {
		return err
	}
	parts := partScanner{b: b, delimiter: []byte(crlf + "--" + boundary)}
	for bytes.HasPrefix(b[parts.i:], []byte(crlf)) { // every reader ignores blank lines before it
		parts.i += len(crlf)
	}
	for {
		p, err := parts.next()
		if err != nil || p == nil {
			return err
		}
		if p.file {
			f.Prompt.Media++
		}
		if !p.model {
			continue
		}
		f.Model, f.ModelStart, f.ModelEnd, f.ModelSeen, f.ModelRaw = "", 0, 0, true, true
		if p.file {
			continue
		}
		if value := b[p.start:p.end]; !utf8.Valid(value) {
			_, err = parts.fail("the model is not UTF-8") // Starlette reads it as Latin-1
			return err
		}
		f.Model, f.ModelStart, f.ModelEnd = string(b[p.start:p.end]), p.start, p.end
	}
}

// extended matches parameters in the form of RFC 2231. mime reads these, but Starlette does not.
var extended = regexp.MustCompile(`(?i)[;\s](boundary|name|charset)\s*\*`)

// boundaryOf returns the boundary in a form's content type.
func boundaryOf(contentType string) (string, error) {
	_, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	charset, has := params["charset"]
	switch {
	case err != nil:
		return "", &Form{Problem: "its content type cannot be read: " + err.Error()}
	case extended.MatchString(contentType) || strings.Contains(contentType, `\`):
		return "", &Form{Problem: "its content type has escaped parameters"}
	case boundary == "" || len(boundary) > maxBoundary:
		return "", &Form{Problem: fmt.Sprintf("its boundary has %d bytes instead of 1 to %d", len(boundary), maxBoundary)}
	case has && !strings.EqualFold(charset, "utf-8"):
		return "", &Form{Problem: fmt.Sprintf("its charset is %q instead of utf-8", charset)}
	}
	return boundary, nil
}

// part is one part of a form.
type part struct {
	model, file bool // its name is "model"; it is a file
	start, end  int  // of its content
}

// partScanner scans the parts of a form.
type partScanner struct {
	b         []byte
	delimiter []byte // of parts: CRLF, two hyphens and the boundary
	i         int    // where the next boundary begins, without its CRLF
	number    int
	lines     *bufio.Reader // of headers; reused for all parts
}

func (s *partScanner) fail(format string, a ...any) (*part, error) {
	return nil, &Form{Part: s.number, Problem: fmt.Sprintf(format, a...)}
}

// next returns the next part, or nil after the last one.
func (s *partScanner) next() (*part, error) {
	rest, ok := bytes.CutPrefix(s.b[s.i:], s.delimiter[len(crlf):])
	switch {
	case !ok:
		return s.fail("it does not begin with its boundary")
	case s.number > 0 && (string(rest) == "--" || string(rest) == "--\r\n"):
		return nil, nil
	case !bytes.HasPrefix(rest, []byte(crlf)):
		return s.fail("it has no part, or more follows its boundary in the same line")
	}
	if s.number++; s.number > MaxParts {
		return s.fail("more than %d parts", MaxParts)
	}
	rest = rest[len(crlf):]
	length := bytes.Index(rest, []byte(crlf+crlf))
	if length < 0 {
		return s.fail("its headers do not end")
	}
	head := rest[:length+2*len(crlf)]
	p := &part{start: len(s.b) - len(rest) + len(head)}
	if s.lines == nil {
		s.lines = bufio.NewReader(nil)
	}
	s.lines.Reset(bytes.NewReader(head))
	if problem := p.read(head, s.lines); problem != "" {
		return s.fail("%s", problem)
	}
	if length = bytes.Index(s.b[p.start:], s.delimiter); length < 0 {
		return s.fail("it does not end with the form's boundary")
	}
	p.end = p.start + length
	s.i = p.end + len(crlf)
	return p, nil
}

const crlf = "\r\n"

// maxHead is the largest number of bytes of a part's headers. python-multipart accepts 4096 for each.
const maxHead = 16 << 10

// read reads a part's headers, including the blank line after them, through lines, which is set to read head. It
// returns a problem, or "".
func (p *part) read(head []byte, lines *bufio.Reader) (problem string) {
	if len(head) > maxHead {
		return fmt.Sprintf("its headers have more than %d bytes", maxHead)
	}
	ends := bytes.Count(head, []byte(crlf))
	switch {
	case bytes.Count(head, []byte("\n")) != ends || bytes.Count(head, []byte("\r")) != ends:
		return "a header line does not end in CRLF"
	case bytes.Contains(head, []byte("\n ")) || bytes.Contains(head, []byte("\n\t")):
		return "a header line is folded"
	}
	header, err := textproto.NewReader(lines).ReadMIMEHeader()
	if err != nil {
		return "its headers cannot be read: " + err.Error()
	}
	name, problem := p.nameIn(header)
	if problem != "" {
		return problem
	}
	if p.model = name == "model"; p.model {
		switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
		case "", "7bit", "8bit", "binary":
		default:
			return "the model is encoded"
		}
	}
	return ""
}

// nameIn returns the name of a part, and notes whether it is a file. It returns a problem of the name, or "".
func (p *part) nameIn(header textproto.MIMEHeader) (name, problem string) {
	dispositions := header.Values("Content-Disposition")
	if len(dispositions) != 1 {
		return "", fmt.Sprintf("it has %d Content-Disposition headers instead of 1", len(dispositions))
	}
	_, params, err := mime.ParseMediaType(dispositions[0])
	name, named := params["name"]
	switch {
	case err != nil:
		return "", "its Content-Disposition cannot be read: " + err.Error()
	case !named || extended.MatchString(dispositions[0]):
		return "", "it has no plain name"
	case strings.Contains(dispositions[0], `\`) && strings.Contains(dispositions[0], "model"):
		return "", "its Content-Disposition is escaped" // readers differ about the end of such a string
	}
	_, p.file = params["filename"]
	return name, ""
}
