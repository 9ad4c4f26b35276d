package config

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Duration is a time.Duration whose YAML form is a Go duration with a unit, such as "30s" or "1m30s". A bare number is
// an error: no reader should have to guess its unit.
type Duration time.Duration

// Std returns the time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the shortest Go duration: "5m", not "5m0s".
func (d Duration) String() string { return invalid.Text(time.Duration(d)) }

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	*d = Duration(parsed)
	return nil
}

// Type implements pflag.Value.
func (*Duration) Type() string { return "duration" }

// MarshalYAML writes the text of the duration.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

func (d *Duration) decodeScalar(node *yaml.Node) string {
	if node.Tag == "!!int" || node.Tag == "!!float" {
		return fmt.Sprintf("must be a duration with a unit, such as %ss or %sms", node.Value, node.Value)
	}
	if node.Tag != "!!str" {
		return "must be a duration with a unit, such as 30s"
	}
	parsed, err := time.ParseDuration(node.Value)
	if err != nil {
		return "must be a duration with a unit, such as 30s or 1m30s"
	}
	*d = Duration(parsed)
	return ""
}
