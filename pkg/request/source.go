package request

import (
	"fmt"
	"slices"
	"strings"
)

// Context has the dynamic metadata and the attributes of a request. The data plane writes them; clients cannot.
type Context interface {
	// Metadata returns the string, number or bool at a path in a namespace of the dynamic metadata, as text; else "".
	Metadata(namespace string, path []string) string
	// Attribute returns an attribute that is a string, number or bool, as text; else "".
	Attribute(name string) string
}

type sourceKind uint8

const (
	fromModel sourceKind = iota
	fromHeader
	fromMetadata
	fromAttribute
)

// source is one source of an identity in a request.
type source struct {
	kind sourceKind
	// name is the header (in lower case), the namespace of the metadata, or the attribute.
	name string
	// path is the way to the value within the namespace.
	path []string
	// slot is the index of the header in headers.values.
	slot slot
}

// metadataSource begins the text of a source in the dynamic metadata.
const metadataSource = "metadata:"

// sourceModel is the source of flows by model.
const sourceModel = "model"

// badSource describes an invalid source: the wrong part, and its requirement.
type badSource struct{ part, want string }

func (b *badSource) Error() string { return fmt.Sprintf("%q: must %s", b.part, b.want) }

// parseSource parses "header:NAME", "metadata:NAMESPACE/PATH", "attribute:NAME" or "model".
func parseSource(s string) (source, *badSource) {
	kind, rest, _ := strings.Cut(s, ":")
	switch {
	case s == sourceModel:
		return source{kind: fromModel}, nil
	case s == "header:":
		return source{}, &badSource{s, "name the header, as in header:x-tenant"}
	case kind == "header":
		if !isHeaderName(rest) {
			return source{}, &badSource{rest, "be the name of a header"}
		}
		return source{kind: fromHeader, name: strings.ToLower(rest)}, nil
	case strings.HasPrefix(s, metadataSource):
		namespace, path, ok := strings.Cut(rest, "/")
		parts := strings.Split(path, "/")
		if !ok || namespace == "" || slices.Contains(parts, "") {
			return source{}, &badSource{rest, "be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub"}
		}
		return source{kind: fromMetadata, name: namespace, path: parts}, nil
	case s == "attribute:":
		return source{}, &badSource{s, "name the attribute, as in attribute:source.principal"}
	case kind == "attribute":
		return source{kind: fromAttribute, name: rest}, nil
	}
	return source{}, &badSource{s, "be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME"}
}

// lookup returns the source's value, or "". It returns "" for the source "model".
func (s *source) lookup(h *Headers, c Context) string {
	switch s.kind {
	case fromModel: // the model is not known here
	case fromHeader:
		return h.values[s.slot]
	case fromMetadata:
		return c.Metadata(s.name, s.path)
	case fromAttribute:
		return c.Attribute(s.name)
	}
	return ""
}
