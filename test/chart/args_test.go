package chart

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

// epp accepts the arguments of every combination: with one wrong one more, the error names only that one.
func TestArgumentsAreAccepted(t *testing.T) {
	for name, values := range matrix {
		args := append(render(t, values).epp(t).texts("args"), "--on-invalid-config=wrong")
		_, err := run(t, binaries.Path(binaries.EPP), args...)
		if err == nil {
			t.Fatalf("%s: epp accepts an invalid argument", name)
		}
		message, found := err.Error(), false
		for line := range strings.Lines(message[strings.Index(message, "\n")+1:]) {
			switch {
			case strings.HasPrefix(line, "--on-invalid-config:"):
				found = true
			case strings.HasPrefix(line, "--"):
				t.Errorf("%s: %s", name, line)
			}
		}
		if !found {
			t.Errorf("%s: epp does not get to the arguments: %s", name, message)
		}
	}
}
