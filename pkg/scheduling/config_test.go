package scheduling

import (
	"strings"
	"testing"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
}

// Every problem is reported at once, with the field and the valid values.
func TestValidate(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"unknown filter", func(c *Config) { c.Filters[1] = "subnet" }, []string{`Filters[1]: "subnet": must be one of model, ready, subset`}},
		{"filter twice", func(c *Config) { c.Filters[2] = FilterReady }, []string{`Filters[2]: "ready": must be unique`}},
		{"ready left out", func(c *Config) { c.Filters = []string{FilterModel} }, []string{`Filters: [model]: must contain ready`}},
		{"policy", func(c *Config) { c.Policy = "luck" }, []string{`Policy: "luck": must be one of cost, mindrouter, none`}},
		{"tie-break", func(c *Config) { c.TieBreak = "coin" }, []string{`TieBreak: "coin": must be one of rotate, first, random`}},
		{"fallbacks", func(c *Config) { c.Fallbacks = 9 }, []string{"Fallbacks: 9: must be from 0 to 8"}},
		{"all at once", func(c *Config) { *c = Config{Fallbacks: -1} }, []string{"Filters:", "Policy:", "TieBreak:", "Fallbacks: -1"}},
	}
	for _, c := range cases {
		config := DefaultConfig()
		c.change(&config)
		err := config.Validate()
		if err == nil {
			t.Errorf("%s: valid", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
		if _, err := New(config); err == nil {
			t.Errorf("%s: New takes it", c.name)
		}
	}
}

// The registries are sorted.
func TestRegistries(t *testing.T) {
	for _, names := range [][]string{filterNames()} {
		for i := 1; i < len(names); i++ {
			if names[i-1] >= names[i] {
				t.Errorf("%q before %q", names[i-1], names[i])
			}
		}
	}
}
