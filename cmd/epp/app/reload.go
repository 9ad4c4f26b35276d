package app

import (
	"bytes"
	"errors"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// The results of a change of the configuration file: the label of weir_config_reloads_total.
const (
	reloadApplied   = "applied"
	reloadUnchanged = "unchanged" // another text, or the former good one, with the configuration in use
	reloadRefused   = "refused"
)

// errEmpty refuses an emptied file: it is about to be written, or the disk was full. A file with all defaults has {}.
var errEmpty = errors.New("the file is empty (write {} for the profile's defaults)")

// configChanged is called with each new content of the file, and with the present content when the file is read again.
// The first call has the present content. All calls come from one goroutine.
func (a *App) configChanged(text []byte, err error) {
	first := !a.watched
	a.watched = true
	if first && err == nil && bytes.Equal(text, a.loaded) {
		return // the program's initial text, valid or not
	}
	a.loaded = nil
	result := reloadRefused
	var fields []string
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = errEmpty
	}
	if err == nil {
		fields, err = a.reload(text)
	}
	switch {
	case err != nil:
		a.metrics.configValid.Set(0)
		a.configuration.refuse(err)
		a.log.Error(err, "THE NEW CONFIGURATION IS INVALID and not in use: the old one stays in use", "source", a.options.ConfigFile)
	case len(fields) == 0:
		result = reloadUnchanged
		a.metrics.configValid.Set(1)
		a.configuration.refuse(nil)
		a.log.Info("the configuration file does not change the configuration in use", "source", a.options.ConfigFile)
	default:
		result = reloadApplied
		a.metrics.configValid.Set(1)
		a.log.Info("the configuration has changed", "source", a.options.ConfigFile, "fields", fields)
	}
	a.metrics.configReloads.WithLabelValues(result).Inc()
}

// reload applies the configuration of a text and returns the changed fields. On an error, which names every problem,
// nothing changes.
func (a *App) reload(text []byte) (fields []string, err error) {
	running := a.configuration.current()
	source := a.options.configSource()
	source.Text = text
	d, err := config.Reload(source, running)
	if err != nil {
		return nil, err
	}
	a.capBody(&d)
	if fields = config.Changed(running, d); len(fields) == 0 {
		return nil, nil
	}
	flow, streams := a.options.converted(&d)
	scheduler, err := scheduling.New(d.SchedulingConfig())
	if err != nil {
		return nil, err
	}
	if err := a.pool.reconfigure(flow, scheduler, streams); err != nil {
		return nil, d.Refused(err)
	}
	a.pool.records.Reconfigure(d.SinkConfig())
	if running.Recording != d.Recording {
		if err := a.pool.resizeRecording(d.RecordingConfig()); err != nil {
			a.log.Error(err, "configuration: recording: it cannot begin; requests are served as before")
		}
	}
	a.configuration.use(d, time.Now())
	for _, key := range config.AtNextStart(fields) {
		a.log.Info("WARNING: configuration: " + key + ": the change takes effect at the next start")
	}
	advise(&d, a.pool.endpoints(), a.options.HashFlowKeys, a.log)
	return fields, nil
}

// capBody lowers the limit of bodies to the limit of the gRPC server, which is fixed at the start. A larger body would
// end the stream with an error instead of too-large.
func (a *App) capBody(d *config.Document) {
	if most := int64(a.receiveLimit - messageMargin); d.Limits.MaxBodyBytes > most {
		a.log.Info("WARNING: configuration: limits.maxBodyBytes cannot grow beyond its value at start; "+
			"restart for more", "maxBodyBytes", d.Limits.MaxBodyBytes, "used", most)
		d.Limits.MaxBodyBytes = most
	}
}
