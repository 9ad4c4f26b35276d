package version

import (
	"runtime"
	"strings"
	"testing"
)

// A build without -ldflags has the default version, one with them the version that they set.
func TestInfo(t *testing.T) {
	defer func(before string) { Version = before }(Version)
	for set, want := range map[string]string{"": "devel", "v1.2.3": "v1.2.3"} {
		Version = set
		line := Info().String()
		if !strings.HasPrefix(line, want+" (revision ") || !strings.HasSuffix(line, ", "+runtime.Version()+")") {
			t.Errorf("%q: %s", set, line)
		}
	}
}
