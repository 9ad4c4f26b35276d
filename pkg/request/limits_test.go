package request

import (
	"strings"
	"testing"
)

// Requests whose headers are too many or too large are refused, and so are bodies that are announced too large, unless only
// a part of them comes.
func TestLimits(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Limits.MaxHeaders, cfg.Limits.MaxHeaderBytes, cfg.Limits.MaxBodyBytes = 5, 1000, 100
	base := len(strings.Join(chat(), "")) + len("x")
	for _, test := range []struct {
		name    string
		headers []string
		mode    BodyMode
		refused string
	}{
		{"as many headers as may be", headers("a", "", "b", ""), Buffered, ""},
		{"one more", headers("a", "", "b", "", "c", ""), Buffered, "The request has more than 5 headers."},
		{"as many bytes as may be", headers("x", strings.Repeat("v", 1000-base)), Buffered, ""},
		{"one more", headers("x", strings.Repeat("v", 1001-base)), Buffered, "The request headers are larger than 1000 bytes."},
		{"as large a body as may be", headers("content-length", "100"), Buffered, ""},
		{"a byte more", headers("content-length", "101"), Buffered, "The request body is larger than 100 bytes."},
		{"of which a part comes", headers("content-length", "101"), Partial, ""},
		{"that is not needed", headers("content-length", "101", "x-gateway-model-name", "m"), Buffered, ""},
	} {
		s := sent{cfg: cfg, headers: chat(test.headers...), mode: test.mode, body: `{"model":"m"}`}
		if test.refused != "" {
			s.refusedWith(t, ErrTooLarge, "", test.refused)
		} else if _, err := s.read(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
