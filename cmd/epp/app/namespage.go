package app

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/internal/names"
)

// namesTable writes what each objective and model stands for and where that comes from, then the resources that are not
// in use and why. Without any there is no table.
func (n *naming) namesTable(line func(format string, args ...any)) {
	in := n.names.Load()
	if len(in.Objectives)+len(in.Models)+len(in.OtherTargets)+len(in.Verdicts) == 0 {
		return
	}
	line("")
	line("name\tis\tfrom")
	for _, o := range in.Objectives {
		line("objective %s\tpriority %d\t%s", plain(o.Name), o.Priority, o.From)
	}
	for _, m := range in.Models {
		line("model %s\ttargets %s\t%s", plain(m.Name), targetText(m.Targets), m.TargetsFrom)
		if m.Criticality != "" {
			line("model %s\tcriticality %s\t%s", plain(m.Name), m.Criticality, m.CriticalityFrom)
		}
	}
	if len(in.OtherTargets) > 0 {
		line("other models\ttargets %s\t%s", targetText(in.OtherTargets), in.OtherTargetsFrom)
	}
	for _, v := range in.Verdicts {
		if !v.Accepted() {
			line("NOT IN USE\t%s: %s\t%s", v.Reason, plain(v.Message), names.Origin{Kind: v.Kind, Name: v.Name})
		}
	}
}

// targetText returns targets with their weights, as in "v1 (9), v2 (1)".
func targetText(targets []names.Target) string {
	if len(targets) == 0 {
		return "its own name"
	}
	texts := make([]string, len(targets))
	for i, t := range targets {
		texts[i] = fmt.Sprintf("%s (%d)", plain(t.Name), t.Weight)
	}
	return strings.Join(texts, ", ")
}

// plain returns a name, which may have any character, as text on one line.
func plain(name string) string { return strings.Map(printable, name) }
