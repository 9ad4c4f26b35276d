package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-epp/weir/pkg/extproc/body"
)

// ReadBody is the second step. It completes the value with the body; if whole is not set, b is the first part of a body
// whose rest does not come (BUFFERED_PARTIAL). The request is to be refused with the error. Nothing of b is kept.
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
	if len(f.Model) > MaxModelBytes { // even if the header names another model
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

// whyNoModel returns the fault of the model of a body that names none.
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

// scan sets f to the fields of a whole body. A body is a form if its content type says so, and JSON otherwise, whatever its
// content type: no body can hide its model behind a type that Weir does not read.
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

// readPart deals with the first part of a body. Engines read the last of duplicate fields, which may come after the part.
// So the part names no model, and no model is replaced in it.
func (q *Request) readPart(length int, lacking bool) error {
	if lacking {
		return malformed("model", fmt.Sprintf("The body is too long for its field \"model\" to be known: only its first %d "+
			"bytes are read here, and the field may come again after them.", length))
	}
	q.PartNotRewritten = q.Target != q.Model
	return nil
}
