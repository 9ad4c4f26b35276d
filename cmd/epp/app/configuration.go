package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// configSource returns the sources of the configuration, without the text of the file.
func (o *Options) configSource() config.Source {
	return config.Source{Text: []byte(o.ConfigText), Profile: o.Profile, Override: o.Override}
}

// configName returns the configuration's name in messages.
func (o *Options) configName() string {
	switch {
	case o.ConfigFile != "":
		return o.ConfigFile
	case o.ConfigText != "":
		return "--config-text"
	case o.Override != nil:
		return "the profile and the flags"
	default:
		return "the profile"
	}
}

// invalidConfig returns the error of an invalid configuration, with its flag. Without such a flag each problem is a
// line beginning with the key.
func (o *Options) invalidConfig(err error) error {
	switch {
	case o.ConfigFile != "":
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return fmt.Errorf("--config-file: %w", err) // it names the file
		}
		return fmt.Errorf("--config-file: %s: %w", o.ConfigFile, err)
	case o.ConfigText != "":
		return fmt.Errorf("--config-text: %w", err)
	}
	problems := config.Problems{}
	if !errors.As(err, &problems) {
		return err
	}
	return fmt.Errorf("invalid flags:\n%w", errors.Join(problems.Unwrap()...))
}

// loadConfig returns the configuration to use and its text. If the given configuration is invalid and the options
// choose the defaults of its profile, invalid has the problems.
func loadConfig(o *Options, log logr.Logger) (d config.Document, text []byte, invalid, err error) {
	source := o.configSource()
	if o.ConfigFile != "" {
		source.Text, err = os.ReadFile(o.ConfigFile)
	}
	text = source.Text
	if err == nil {
		d, err = config.Load(source)
	}
	if err == nil {
		return d, text, nil, nil
	}
	if o.OnInvalidConfig != InvalidDefaults {
		return d, nil, nil, o.invalidConfig(err)
	}
	invalid = err
	// The defaults of the intended profile, if it exists; with the flags, unless these cause the problems.
	profile := d.Profile
	if _, err := config.Profile(profile); err != nil {
		profile = ""
	}
	d, err = config.Load(config.Source{Profile: profile, Override: o.Override})
	if err != nil {
		d, err = config.Load(config.Source{Profile: profile})
	}
	if err != nil {
		return d, nil, nil, fmt.Errorf("%w; the defaults of the profile are invalid too: %w", o.invalidConfig(invalid), err)
	}
	log.Error(o.invalidConfig(invalid), "THE CONFIGURATION IS INVALID and not in use: starting with the defaults of the profile",
		"source", o.configName(), "profile", d.Profile)
	return d, text, invalid, nil
}

// advise logs warnings about valid settings that are probably not intended, given the known endpoints.
func advise(d *config.Document, endpoints []scheduling.Endpoint, hashed bool, log logr.Logger) {
	_, warnings := shown(*d, hashed)
	for _, w := range append(warnings, d.EndpointWarnings(endpoints)...) {
		log.Info("WARNING: configuration: " + w.Error())
	}
}
