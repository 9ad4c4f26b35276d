package app

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/config"
)

// CommandLine is epp's command line in another program, which needs the configuration of an epp.
type CommandLine struct{ flags *flags }

// NewCommandLine returns a command line on which nothing was given.
func NewCommandLine() CommandLine { return CommandLine{newFlags()} }

// AddTo adds the flags to a set, which parses them. The set's existing flags do not change.
func (c CommandLine) AddTo(set *pflag.FlagSet) {
	set.SetNormalizeFunc(c.flags.set.GetNormalizeFunc())
	set.AddFlagSet(c.flags.set)
}

// Given reports whether a flag was given.
func (c CommandLine) Given(name string) bool { return c.flags.set.Changed(name) }

// Read returns the options and the configuration from the arguments. Unlike epp it does not require model servers.
func (c CommandLine) Read() (Options, config.Document, error) {
	f := c.flags
	if err := f.translateForeign(); err != nil {
		return Options{}, config.Document{}, err
	}
	f.overrideKeys()
	f.chooseMetricsAuth()
	source := f.configSource()
	var err error
	if f.ConfigFile != "" {
		source.Text, err = os.ReadFile(f.ConfigFile)
	}
	var d config.Document
	if err == nil {
		d, err = config.Load(source)
	}
	if err != nil {
		return Options{}, d, f.invalidConfig(err)
	}
	return f.Options, d, nil
}
