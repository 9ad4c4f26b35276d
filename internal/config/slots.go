package config

import (
	"errors"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Slots is a number of batch slots, or Unbounded.
type Slots int64

// Unbounded is the Slots of backends that take any number of requests. Documents have the word; no number stands for it.
const Unbounded Slots = math.MinInt64

const unbounded = "unbounded"

// String returns the number, or "unbounded".
func (s Slots) String() string {
	if s == Unbounded {
		return unbounded
	}
	return strconv.FormatInt(int64(s), 10)
}

// Set implements pflag.Value. Its error says which values are allowed.
func (s *Slots) Set(text string) error {
	node := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: text}
	if text == unbounded {
		node.Tag = "!!str"
	}
	if allowed := s.decodeScalar(&node); allowed != "" {
		return errors.New(allowed)
	}
	return nil
}

// Type implements pflag.Value.
func (*Slots) Type() string { return "slots" }

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
