package app

import (
	"fmt"
	"runtime/debug"
)

// Version is set at build time: -ldflags "-X github.com/weir-epp/weir/cmd/epp/app.Version=v1.2.3".
var Version = ""

// build is what this binary was made from.
type build struct{ version, revision, goVersion string }

func buildInfo() build {
	b := build{version: Version, revision: "unknown", goVersion: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.goVersion = info.GoVersion
		if b.version == "" {
			b.version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.revision = setting.Value
			}
		}
	}
	if b.version == "" || b.version == "(devel)" {
		b.version = "devel"
	}
	return b
}

// buildVersion is one line of what this binary was made from.
func buildVersion() string {
	b := buildInfo()
	return fmt.Sprintf("%s (revision %s, %s)", b.version, b.revision, b.goVersion)
}
