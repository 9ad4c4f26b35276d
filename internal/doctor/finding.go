package doctor

import (
	"fmt"
	"slices"
	"time"
)

// Check is the check for one mistake.
type Check struct {
	// ID is its name; it never changes.
	ID string `json:"id"`
	// Title states the mistake.
	Title string `json:"title"`
	// Why is the harm.
	Why string `json:"why"`
	// Fix is the remedy.
	Fix string `json:"fix"`
	// Harm names the tests that show the harm on a real Envoy, or on a real apiserver.
	Harm []string `json:"-"`

	envoy   func(*Envoy, Weir, reporter)
	cluster func(Cluster, objectReporter)
}

// Finding is a mistake in a configuration.
type Finding struct {
	Check
	// Where is the place: a Path in Envoy's configuration, or an object of Kubernetes.
	Where string `json:"where"`
	// Line is the line of Where in the text, from 1; 0: not known.
	Line int `json:"line,omitempty"`
	// Found is the value found.
	Found string `json:"found"`
	// Change is the correct line.
	Change string `json:"change"`
}

// Report has the findings, in the order of the checks, and the checks that did not run.
type Report struct {
	Findings []Finding `json:"findings"`
	Notes    []string  `json:"notChecked"`
}

// reporter takes a finding: the place, the value found, and the correct line.
type reporter func(at Path, found, change string)

// Examine applies all checks to an Envoy's configuration.
func Examine(e *Envoy, w Weir) Report {
	var r Report
	said := map[[3]string]bool{}
	for _, c := range Checks() {
		if c.envoy == nil {
			continue
		}
		c.envoy(e, w, func(at Path, found, change string) {
			f := Finding{Check: c, Where: at.String(), Found: found, Change: change}
			if key := [3]string{c.ID, f.Where, change}; !said[key] { // several routes share one place
				said[key] = true
				if !at.elsewhere() {
					f.Line = e.lineOf(at)
				}
				r.Findings = append(r.Findings, f)
			}
		})
	}
	note := func(text string) {
		if !slices.Contains(r.Notes, text) {
			r.Notes = append(r.Notes, text)
		}
	}
	for _, text := range w.unknown(e) {
		note(text)
	}
	for _, n := range e.notes.list {
		note(fmt.Sprintf("%s: %s", n.At, n.Text))
	}
	return r
}

// unknown returns the missing facts that checks need.
func (w Weir) unknown(e *Envoy) []string {
	if len(w.of(e, false)) == 0 {
		return []string{"no ext_proc filter of Weir's is in use here: nothing was checked"}
	}
	var all []string
	if w.TLS == nil {
		all = append(all, "TLS to Weir: --secure-serving was not given")
	}
	if w.Port == 0 {
		all = append(all, "port of Weir: --grpc-port was not given")
	}
	if w.Endpoints == nil {
		all = append(all, "endpoints: neither --endpoints nor --endpoints-file was given")
	}
	for _, c := range w.servers(e) {
		if w.Endpoints != nil && c.originalHeader() == "" && !c.resolved {
			all = append(all, fmt.Sprintf("endpoints of cluster %s: their addresses are not there (/config_dump?include_eds has them)", c.config.GetName()))
		}
	}
	return all
}

// seconds returns a duration in the form of Envoy's configuration.
func seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }
