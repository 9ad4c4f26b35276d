package app

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/internal/names"
)

// The bounds of the table of names. Strangers' resources could make it arbitrarily large: a small resource can give
// each of 10,000 models 64 targets with names of a kilobyte.
const (
	maxNameRows     = 1000 // of objectives, of models, and of resources not in use
	maxTargetsShown = 8    // of a model
)

// namesTable writes the meaning and the source of each objective and model, then the resources not in use with the
// reasons. Without any there is no table.
func (n *naming) namesTable(line func(format string, args ...any)) {
	in := n.names.Load()
	if len(in.Objectives)+len(in.Models)+len(in.OtherTargets)+len(in.Verdicts) == 0 {
		return
	}
	line("")
	line("name\tis\tfrom")
	more := func(what string, n int) {
		if n > maxNameRows {
			line("%s\t%d more\t", what, n-maxNameRows)
		}
	}
	for _, o := range in.Objectives[:min(len(in.Objectives), maxNameRows)] {
		line("objective %s\tpriority %d\t%s", plain(o.Name), o.Priority, o.From)
	}
	more("objectives", len(in.Objectives))
	for _, m := range in.Models[:min(len(in.Models), maxNameRows)] {
		line("model %s\ttargets %s\t%s", plain(m.Name), targetText(m.Targets), m.TargetsFrom)
		if m.Criticality != "" {
			line("model %s\tcriticality %s\t%s", plain(m.Name), m.Criticality, m.CriticalityFrom)
		}
	}
	more("models", len(in.Models))
	if len(in.OtherTargets) > 0 {
		line("other models\ttargets %s\t%s", targetText(in.OtherTargets), in.OtherTargetsFrom)
	}
	unused := 0
	for _, v := range in.Verdicts {
		if v.Accepted() {
			continue
		}
		if unused++; unused <= maxNameRows {
			line("NOT IN USE\t%s: %s\t%s", v.Reason, plain(v.Message), names.Origin{Kind: v.Kind, Name: v.Name})
		}
	}
	more("NOT IN USE", unused)
}

// targetText returns targets with their weights, as in "v1 (9), v2 (1)".
func targetText(targets []names.Target) string {
	if len(targets) == 0 {
		return "its own name"
	}
	var texts []string
	for _, t := range targets[:min(len(targets), maxTargetsShown)] {
		texts = append(texts, fmt.Sprintf("%s (%d)", plain(t.Name), t.Weight))
	}
	if n := len(targets) - len(texts); n > 0 {
		texts = append(texts, fmt.Sprintf("%d more", n))
	}
	return strings.Join(texts, ", ")
}

// plain returns a name, which may have any characters, as text on one line.
func plain(name string) string { return strings.Map(blank, name) }
