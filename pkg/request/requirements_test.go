package request

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A trusted header states the labels that an endpoint must have and the taints that it may have. What cannot be read is
// refused, and so is a second header. The header does not reach the model server.
func TestRequirements(t *testing.T) {
	for value, want := range map[string]string{
		"":                            "{[] []}",
		"zone=a":                      "{[{zone a}] []}",
		" zone = a , rack=,~old , ~x": "{[{zone a} {rack }] [old x]}",
		",,":                          "{[] []}",
		"a=b=c":                       "{[{a b=c}] []}",
		"zone":                        "refused",
		"~":                           "refused",
		"=a":                          "refused",
		"~a,b":                        "refused",
		strings.Repeat("a=b,", 16):    "{[" + strings.TrimSpace(strings.Repeat("{a b} ", 16)) + "] []}",
		strings.Repeat("a=b,", 17):    "refused",
	} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-needs", value)}
		s.cfg.TrustedHeaders.Requirements = "X-Needs"
		r, err := s.read()
		got := fmt.Sprint(r.Requirements)
		if e := new(Error); errors.As(err, &e) {
			if got = "refused"; e.Field != "x-needs" {
				t.Errorf("%q: of the field %q", value, e.Field)
			}
		}
		if got != want || value != "" && r.Control == 0 {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	twice := sent{cfg: DefaultConfig(), headers: chat("x-needs", "a=b", "x-needs", "c=d")}
	twice.cfg.TrustedHeaders.Requirements = "x-needs"
	if _, err := twice.read(); err == nil {
		t.Error("two headers are no error")
	}
}
