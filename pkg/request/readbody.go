package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-epp/weir/pkg/body"
)

// ReadBody is the second step. It completes the value with the body. If whole is not set, b is the first part of a body
// whose rest does not come (BUFFERED_PARTIAL). An error refuses the request. b is not kept.
func (q *Request) ReadBody(b []byte, whole bool) error {
	var f body.Fields
	if err := q.readModel(&f, b, whole); err != nil {
		return err
	}
	q.complete()
	if whole {
		q.affine(&f, b)
	} else {
		q.affine(nil, nil)
	}
	return nil
}

func (q *Request) readModel(f *body.Fields, b []byte, whole bool) error {
	lacking := q.Model == "" && q.needsModel()
	if !whole {
		return q.readPart(len(b), lacking && q.API != NoAPI)
	}
	if err := scan(f, b, q.contentType); err != nil {
		if q.API != NoAPI || lacking && mayNameModel(b, q.contentType) {
			return malformed("", fmt.Sprintf("The request body is not valid: %v.", err))
		}
		*f = body.Fields{} // this path may take any body
	}
	if len(f.Model) > MaxModelBytes { // even if a header names another model
		return modelTooLong()
	}
	if lacking && q.API != NoAPI && f.Model == "" {
		return malformed("model", "The field \"model\" is "+whyNoModel(f)+".")
	}
	if q.Model == "" && f.Model != "" {
		q.setModel(f.Model)
	}
	q.needByBody(f)
	q.edit(f)
	q.measure(f)
	q.hint(&f.Hints)
	return nil
}

// whyNoModel returns the fault of a body without a model.
func whyNoModel(f *body.Fields) string {
	switch {
	case f.ModelSeen && f.ModelEnd == 0:
		return "not a string"
	case f.ModelSeen:
		return "empty"
	default:
		return "missing"
	}
}

// scan sets f to the fields of a whole body. A body with a form's content type is a form; any other body is read as
// JSON, so no body can hide its model behind an unknown content type.
func scan(f *body.Fields, b []byte, contentType string) error {
	if body.IsForm(contentType) {
		return f.ScanForm(b, contentType)
	}
	return f.Scan(b)
}

// mayNameModel reports whether a more lenient reader than scan could find a model in the body: a form, or bytes that
// begin like a JSON object, in any encoding of JSON. Python reads NaN, deeper nesting, byte order marks and UTF-16; other
// readers ignore bytes after the object.
func mayNameModel(b []byte, contentType string) bool {
	const before = " \t\r\n\x00\xef\xbb\xbf\xfe\xff" // blanks, the zeros of wider encodings, byte order marks
	first := slices.IndexFunc(b, func(c byte) bool { return strings.IndexByte(before, c) < 0 })
	return body.IsForm(contentType) || first >= 0 && b[first] == '{'
}

// readPart handles the first part of a body. Engines read the last of duplicate fields, which may come after the part.
// So Weir takes no model from the part, and replaces none in it.
func (q *Request) readPart(length int, lacking bool) error {
	if lacking {
		return malformed("model", fmt.Sprintf("The body is too long for its field \"model\" to be known: only its first %d "+
			"bytes are read here, and the field may come again after them.", length))
	}
	q.PartNotRewritten = q.Target != q.Model
	return nil
}
