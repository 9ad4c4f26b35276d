package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-epp/weir/cmd/epp/app"
	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/simulate"
	"github.com/weir-epp/weir/pkg/recording"
)

// checkComparison reports wrong flags of a comparison.
func (o *simulateOptions) checkComparison(ps *arguments.Problems) {
	if _, err := simulate.ParseClients(o.clients); err != nil {
		ps.Add("clients", "%v", err)
	}
	arguments.Within(ps, "flows", o.flows, 1, 1000)
	if !slices.Contains([]string{"text", "json"}, o.output) {
		ps.Add("output", "%q: must be text or json", o.output)
	}
	if o.json && o.output == "json" {
		ps.Add("json", "has no use with --output json")
	}
}

// runRecording simulates a recording with each configuration.
func (o *simulateOptions) runRecording(stdout, stderr io.Writer) error {
	runs, problems := o.configurations()
	if err := errors.Join(problems...); err != nil {
		return err
	}
	bar := newProgress(stderr, 1)
	defer bar.end()
	var show func(part float64)
	if bar.bar != nil {
		steps := bar.begin("simulating")
		show = func(part float64) { steps(int(part*partSteps), partSteps) }
	}
	history, err := o.history()
	if err != nil {
		return err
	}
	clients := simulate.Clients(o.clients)
	var options []simulate.RecordedOptions
	for i := range runs {
		machine := app.RecordedConfig(&runs[i].Config, history.Hidden)
		options = append(options, simulate.RecordedOptions{
			Name: runs[i].Name, Config: &runs[i].Config, Machine: &machine, Seed: o.seed, Clients: clients,
		})
	}
	if o.json || o.plots != "" {
		recorded := simulate.RecordedOptions{Name: simulate.Recorded, Seed: o.seed, Clients: clients}
		reports, err := o.reports(history, append([]simulate.RecordedOptions{recorded}, options...))
		if err != nil || o.json {
			return errors.Join(err, o.print(stdout, reports, nil))
		}
	}
	compared, err := simulate.Compare(&simulate.CompareOptions{
		Configs: options, Clients: clients, Seed: o.seed, Flows: o.flows, Progress: show,
	}, history)
	if err != nil {
		return fmt.Errorf("%s: %w", withoutPassword(o.recording), err)
	}
	bar.end()
	if o.output == "json" {
		return printable.WriteJSON(stdout, compared)
	}
	return compared.Write(stdout)
}

// history reads the recording, and replays it with its own configuration.
func (o *simulateOptions) history() (*recording.History, error) {
	format, err := app.Recordings()
	if err != nil {
		return nil, err
	}
	var history *recording.History
	err = replayBounds.replayed(o.recording, func(in io.Reader) (err error) {
		history, err = format.History(in)
		return err
	})
	var differs *recording.Difference
	switch {
	case errors.As(err, &differs):
		return nil, fmt.Errorf("%s: the recorded configuration reproduced %d grants, and then decided differently: %w", withoutPassword(o.recording), history.Grants, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", withoutPassword(o.recording), err)
	}
	return history, nil
}

// reports runs simulations, and draws them with --plots. The first report is the recorded history.
func (o *simulateOptions) reports(h *recording.History, options []simulate.RecordedOptions) ([]*simulate.Report, error) {
	reports := []*simulate.Report{simulate.HistoryFigures(h)}
	for i := range options {
		r, err := simulate.RunRecorded(&options[i], h)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", withoutPassword(o.recording), options[i].Name, err)
		}
		reports = append(reports, r)
	}
	return reports, o.draw(reports[1:])
}
