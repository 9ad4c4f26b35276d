package version

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// Version is set at build time: -ldflags "-X github.com/weir-epp/weir/internal/version.Version=v1.2.3".
var Version = ""

// Revision is the commit, set in the same way if the build reads none from git, as for a release.
var Revision = ""

// Build identifies a build; an unknown revision is "unknown", an unknown version "devel".
type Build struct{ Version, Revision, Go string }

// Info returns the build of this binary.
func Info() Build {
	b := Build{Version: Version, Revision: cmp.Or(Revision, "unknown"), Go: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Go = info.GoVersion
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && Revision == "" {
				b.Revision = setting.Value
			}
		}
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	return b
}

// String returns the build in one line.
func (b Build) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", b.Version, b.Revision, b.Go)
}
