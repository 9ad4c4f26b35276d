package recording

import "github.com/weir-epp/weir/pkg/invalid"

// Config is the size of a recording.
type Config struct {
	// MiB is the size of the kept segments, 0 to MostMiB; 0: nothing is recorded.
	MiB int64
}

// MostMiB bounds Config.MiB.
const MostMiB = 1024

// Validate reports every problem, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	invalid.Within(&ps, invalid.At("MiB"), c.MiB, 0, MostMiB)
	return ps.Err()
}

// Bytes returns the size in bytes.
func (c *Config) Bytes() int { return int(c.MiB) << 20 }
