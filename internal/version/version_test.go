package version

import (
	"runtime"
	"strings"
	"testing"
)

// A build without -ldflags has the default version. With them it has the given version and revision.
func TestInfo(t *testing.T) {
	defer func(version, revision string) { Version, Revision = version, revision }(Version, Revision)
	for set, want := range map[string]string{"": "devel", "v1.2.3": "v1.2.3"} {
		Version = set
		line := Info().String()
		if !strings.HasPrefix(line, want+" (revision ") || !strings.HasSuffix(line, ", "+runtime.Version()+")") {
			t.Errorf("%q: %s", set, line)
		}
	}
	Version, Revision = "v1.2.3", "0123abc"
	if line, want := Info().String(), "v1.2.3 (revision 0123abc, "+runtime.Version()+")"; line != want {
		t.Errorf("with a revision: %s, want %s", line, want)
	}
}
