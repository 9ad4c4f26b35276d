package config

import (
	"errors"
	"math"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Slots is a number of batch slots, Auto, or Unbounded.
type Slots int64

// Unbounded is the Slots of backends that take any number of requests. Documents have the word; no number stands for it.
const Unbounded Slots = math.MinInt64

// Auto is the Slots of backends whose bound follows their engine.
const Auto = Unbounded + 1

const (
	unbounded = "unbounded"
	auto      = "auto"
)

// String returns the number, or the word.
func (s Slots) String() string {
	switch s {
	case Unbounded:
		return unbounded
	case Auto:
		return auto
	}
	return strconv.FormatInt(int64(s), 10)
}

// Set implements pflag.Value. Its error says which values are allowed.
func (s *Slots) Set(text string) error {
	node := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: text}
	if text == unbounded || text == auto {
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
	if s == Unbounded || s == Auto {
		return s.String(), nil
	}
	return int64(s), nil
}

func (s *Slots) decodeScalar(node *yaml.Node) string {
	n, err := strconv.ParseInt(node.Value, 10, 64)
	switch {
	case node.Tag == "!!str" && node.Value == unbounded:
		*s = Unbounded
	case node.Tag == "!!str" && node.Value == auto:
		*s = Auto
	case node.Tag != "!!int" || err != nil || Slots(n) <= Auto:
		return "must be a whole number, " + auto + " or " + unbounded
	default:
		*s = Slots(n)
	}
	return ""
}

// unbounded reports whether backends take any number of requests, whatever they report.
func (c *RequestQueueController) unbounded() bool {
	return c.SlotsPerBackend != nil && *c.SlotsPerBackend == Unbounded
}

// automatic reports whether the bound of each backend follows its engine: with slotsPerBackend auto, unless the watermark or
// a bound is stated, which is kept.
func (d *Document) automatic() bool {
	c := d.RequestQueueController
	return c.SlotsPerBackend != nil && *c.SlotsPerBackend == Auto && !d.statesBounds()
}

// statesBounds reports whether the watermark or a bound per backend is another than the profile's.
func (d *Document) statesBounds() bool {
	profile, err := Profile(d.Profile)
	if err != nil {
		return false
	}
	c, own := d.RequestQueueController, profile.RequestQueueController
	return c.WatermarkPerBackend != own.WatermarkPerBackend || !reflect.DeepEqual(c.LowerBoundPerBackend, own.LowerBoundPerBackend) ||
		!reflect.DeepEqual(c.UpperBoundPerBackend, own.UpperBoundPerBackend)
}
