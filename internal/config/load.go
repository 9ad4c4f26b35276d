package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/pkg/extproc"
)

// Source has the inputs of a configuration.
type Source struct {
	// Text is the YAML file; empty: none.
	Text []byte
	// Profile overrides the file's profile; empty: the file's, else DefaultProfile.
	Profile string
	// Override makes the last changes before validation: those of the flags that were given. It may be nil.
	Override func(*Document)
}

// Load returns the effective configuration of a source: defaults, profile, file and overrides, all of it validated. The
// error is Problems and lists all of them; with an error the document must not be used.
func Load(source Source) (Document, error) {
	d, lines, problems := layers(source)
	return d, d.inText(problems.locate(lines)).err()
}

// layers returns a source's document with the problems of its text and its values.
func layers(source Source) (d Document, lines map[string]int, problems Problems) {
	d, dec := overlay(source)
	problems = dec.problems.locate(dec.lines) // nameOrigins takes lines away
	d.derive(func(path string) bool { return dec.lines[path] > 0 })
	if line := dec.lines["flows.levels"]; line > 0 && len(d.Flows.Levels) == 0 && !slices.ContainsFunc(problems, func(p Problem) bool { return p.Path == "flows.levels" }) {
		problems = append(problems, Problem{Path: "flows.levels", Found: "[]", Message: "must have one level or two", Line: line})
	}
	before := d
	if source.Override != nil {
		source.Override(&d)
	}
	return d, dec.lines, append(problems, problems.instead(d.nameOrigins(d.problems(), before, dec.lines))...)
}

// instead returns the later problems that the text's own do not explain: a key that is missing in a section with an
// unknown one was probably meant by that.
func (ps Problems) instead(later Problems) Problems {
	return slices.DeleteFunc(later, func(missing Problem) bool {
		return missing.Found == `""` && slices.ContainsFunc(ps, func(p Problem) bool {
			return strings.HasPrefix(p.Message, unknownField) && section(p.Path) == section(missing.Path)
		})
	})
}

// section returns the path of the section that a key is in.
func section(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// derive changes the values that follow from the keys that a layer names. A watermark replaces the bounds of the layer
// below, which are those of another watermark; a watermark or a bound replaces slotsPerBackend: auto of the layer
// below; levels replace the profile's key of flows; the profile's localityQuantum is one of tokens, and of flows; its minDrain is never longer than the file's
// drainWindow, nor its flowCapacity larger than the file's totalCapacity.
func (d *Document) derive(named func(path string) bool) {
	if q := &d.FairRequestQueue; named("fairRequestQueue.totalCapacity") && !named("fairRequestQueue.flowCapacity") {
		q.FlowCapacity = min(q.FlowCapacity, max(q.TotalCapacity, 1))
	}
	if f := &d.Flows; len(f.Levels) > 0 && !named("flows.key") {
		f.Key = nil // the profile's
	}
	if f := &d.Flows; !named("flows.localityQuantum") && (f.Discipline == DisciplineNone || d.Cost == string(extproc.CostRequests)) {
		f.LocalityQuantum = 0
	}
	const at = "requestQueueController."
	c := &d.RequestQueueController
	states := named(at+"watermarkPerBackend") || named(at+"lowerBoundPerBackend") || named(at+"upperBoundPerBackend")
	if slots := c.SlotsPerBackend; states && slots != nil && *slots == Auto && !named(at+"slotsPerBackend") {
		c.SlotsPerBackend = nil
	}
	if named(at + "watermarkPerBackend") {
		c.deriveBounds(!named(at+"lowerBoundPerBackend"), !named(at+"upperBoundPerBackend"))
	}
	if named(at+"drainWindow") && !named(at+"minDrain") {
		c.MinDrain = min(c.MinDrain, max(c.DrainWindow, 0))
	}
}

// deriveBounds makes bounds derive from the watermark, for a layer that names the watermark and not them.
func (c *RequestQueueController) deriveBounds(lower, upper bool) {
	if lower {
		c.LowerBoundPerBackend = nil
	}
	if upper {
		c.UpperBoundPerBackend = nil
	}
}

// nameOrigins adds to the problems where their values come from, unless they are on a line of the file. A value that
// differs from the document before the overrides is from a flag; if the file has a line for it, that line has another
// value and is dropped. A value of the profile itself is marked as its default: what contradicts it is what somebody
// wrote.
func (d Document) nameOrigins(ps Problems, before Document, lines map[string]int) Problems {
	profile, err := Profile(d.Profile)
	for i, p := range ps {
		value, ok := lookUp(reflect.ValueOf(d), p.Path)
		if !ok {
			continue
		}
		if written, _ := lookUp(reflect.ValueOf(before), p.Path); !same(value, written) {
			ps[i].Found += " (from a flag)"
			delete(lines, p.Path)
			continue
		}
		if err != nil || lines[p.Path] > 0 {
			continue
		}
		if own, _ := lookUp(reflect.ValueOf(profile), p.Path); !same(value, own) {
			continue
		}
		ps[i].Found += fmt.Sprintf(" (the default of profile %s)", d.Profile)
	}
	return ps
}

// Validate reports every value that is out of range or contradicts another, as Problems. Unlike Load it accepts what
// this build does not implement.
func (d Document) Validate() error { return d.problems().err() }

// overlay returns the profile with the text over it.
func overlay(source Source) (Document, *decoder) {
	root, problems := parseYAML(source.Text)
	dec := newDecoder(root)
	dec.ours = true
	dec.problems = problems
	name := source.Profile
	if name == "" {
		name = profileOf(root)
	}
	d, err := Profile(name)
	if err != nil { // Validate names the value and the known ones
		d, _ = Profile(DefaultProfile)
	}
	if theirs := foreign(root); theirs != nil {
		dec.problems = append(dec.problems, theirs...)
	} else if root != nil {
		dec.decode("", root, reflect.ValueOf(&d).Elem())
	}
	if source.Profile != "" {
		d.Profile = source.Profile
	}
	return d, dec
}

// profileOf returns the profile that a document names, or DefaultProfile if it names none.
func profileOf(root *yaml.Node) string {
	if name := valueOf(root, "profile"); name != "" {
		return name
	}
	return DefaultProfile
}

// valueOf returns the scalar that a document has at a key of its own; empty if it has none.
func valueOf(root *yaml.Node, key string) string {
	if root != nil && root.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if v := root.Content[i+1]; root.Content[i].Value == key && (v.Tag == "!!str" || v.Tag == "!!bool") {
				return v.Value
			}
		}
	}
	return ""
}
