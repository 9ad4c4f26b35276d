package config

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/pkg/stock"
)

// Slots is a number of batch slots, or Unbounded.
type Slots int64

// Unbounded is the Slots of backends that take any number of requests.
const Unbounded Slots = stock.Unbounded

const unbounded = "unbounded"

// String returns the number, or "unbounded".
func (s Slots) String() string {
	if s == Unbounded {
		return unbounded
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalYAML writes the number, or the word.
func (s Slots) MarshalYAML() (any, error) {
	if s == Unbounded {
		return unbounded, nil
	}
	return int64(s), nil
}

func (s *Slots) decodeScalar(node *yaml.Node) string {
	n, err := strconv.ParseInt(node.Value, 10, 64)
	switch {
	case node.Tag == "!!str" && node.Value == unbounded:
		*s = Unbounded
	case node.Tag != "!!int" || err != nil || Slots(n) == Unbounded:
		return "must be a whole number or " + unbounded
	default:
		*s = Slots(n)
	}
	return ""
}

// unbounded reports whether backends take any number of requests, whatever they report.
func (c *RequestQueueController) unbounded() bool {
	return c.SlotsPerBackend != nil && *c.SlotsPerBackend == Unbounded
}
