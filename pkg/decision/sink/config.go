package sink

import (
	"path/filepath"

	"github.com/weir-epp/weir/pkg/invalid"
)

// The kinds of sinks.
const (
	Log  = "log"
	File = "file"
)

// Config is the destination of decision records.
type Config struct {
	// Kind is Log or File.
	Kind string
	// Path is the absolute path of the file, required with File. Log has no use for it, but it must be absolute too if set.
	Path string
	// MaxBytes is the size at which the file is renamed; MinBytes to MostBytes.
	MaxBytes int64
}

// Limits of Config.MaxBytes.
const (
	MinBytes  = 64 << 10
	MostBytes = 1 << 40
)

// DefaultConfig returns the log as the sink, and 64 MiB of a file: some ten thousand records.
func DefaultConfig() Config { return Config{Kind: Log, MaxBytes: 64 << 20} }

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	invalid.OneOf(&ps, invalid.At("Kind"), c.Kind, []string{Log, File})
	invalid.Within(&ps, invalid.At("MaxBytes"), c.MaxBytes, MinBytes, MostBytes)
	switch {
	case c.Kind == File && c.Path == "":
		ps.Add(invalid.At("Path"), c.Path, "must be given with %s: %s", invalid.At("Kind"), File)
	case c.Path != "" && !filepath.IsAbs(c.Path):
		ps.Add(invalid.At("Path"), c.Path, "must be an absolute path")
	}
	return ps.Err()
}
