package version

import (
	"fmt"
	"runtime/debug"
)

// Version is set at build time: -ldflags "-X github.com/weir-epp/weir/internal/version.Version=v1.2.3".
var Version = ""

// Build is what a binary was made from; what is not known of it is "unknown", the version "devel".
type Build struct{ Version, Revision, Go string }

// Info is what this binary was made from.
func Info() Build {
	b := Build{Version: Version, Revision: "unknown", Go: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Go = info.GoVersion
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Revision = setting.Value
			}
		}
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	return b
}

// String is one line of it.
func (b Build) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", b.Version, b.Revision, b.Go)
}
