package request

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/invalid"
)

// Ring resolves the class of requests for one model, or for all models without a ring of their own (policyClass). A
// request names an explicit class, or a family, which has a class for each bucket of uncached tokens. So a client
// chooses its family, but never its bucket.
type Ring struct {
	// DefaultFamily is the family of a request that names no explicit class and no family. It must be set if and only
	// if a class of the ring has a family.
	DefaultFamily string
	// Buckets are the buckets, in ascending order of their floors, of which the first is 0.
	Buckets []Bucket
}

// Bucket contains the requests with at least MinTokens uncached tokens, and fewer than the next bucket's.
type Bucket struct {
	// MinTokens is its floor, from 0 to fairqueue.MaxCost.
	MinTokens int64
	Name      string
}

// Class is a class of a ring (classes): an explicit one, or with Family and Bucket a family's class for a bucket.
type Class struct {
	// Model is the model of its ring, or "" for the ring of models without one.
	Model string
	// Name, Family and Bucket are unique in the ring.
	Name, Family, Bucket string
}

// checkRings checks the families and buckets of all rings; the queue owns the classes and checks the rest.
func (c *Config) checkRings(ps *invalid.Problems) {
	c.Ring.check(ps, invalid.At("Ring"), c.Classes, "")
	models := map[string]bool{"": true}
	for i, class := range c.Classes {
		if !models[class.Model] {
			models[class.Model] = true
			own := c.ModelRings[class.Model]
			own.check(ps, invalid.At("ModelRings", invalid.Key(class.Model)), c.Classes, class.Model)
		}
		if class.Model != "" && !slices.ContainsFunc(c.Classes, func(c Class) bool { return c.Model == "" }) {
			ps.Add(invalid.At("Classes", i, "Model"), class.Model, "needs a class without %s, for the other models", invalid.At("Classes", i, "Model"))
		}
	}
	for _, model := range slices.Sorted(maps.Keys(c.ModelRings)) {
		if at, own := invalid.At("ModelRings", invalid.Key(model)), c.ModelRings[model]; !models[model] || model == "" {
			own.checkBuckets(ps, at, len(own.Buckets) > 0)
			ps.Add(at, model, "must be the model of a class")
		}
	}
}

// check checks a ring, whose classes are those of the model.
func (r *Ring) check(ps *invalid.Problems, at invalid.Path, classes []Class, model string) {
	families := familiesOf(classes, model)
	r.checkBuckets(ps, at, len(families) > 0)
	r.checkClasses(ps, at, classes, model, families)
	switch family := at.At("DefaultFamily"); {
	case len(families) == 0 && r.DefaultFamily != "":
		ps.Add(family, r.DefaultFamily, "must be a family, and no class has one")
	case len(families) > 0 && !slices.Contains(families, r.DefaultFamily):
		invalid.OneOf(ps, family, r.DefaultFamily, families)
	}
}

// familiesOf returns the names of the families of a model's classes, sorted.
func familiesOf(classes []Class, model string) []string {
	names := map[string]bool{}
	for _, c := range classes {
		if c.Model == model && c.Family != "" {
			names[c.Family] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (r *Ring) checkBuckets(ps *invalid.Problems, at invalid.Path, needed bool) {
	at = at.At("Buckets")
	switch {
	case needed && len(r.Buckets) == 0:
		ps.Add(at, invalid.Shown("[]"), "must have a bucket: a class has a family")
	case !needed && len(r.Buckets) > 0:
		ps.Add(at, invalid.Shown(fmt.Sprintf("%d buckets", len(r.Buckets))), "must be empty: no class has a family")
	}
	var names invalid.Names
	for i, b := range r.Buckets {
		if names.Check(ps, at.At(i, "Name"), b.Name) {
			checkWord(ps, at.At(i, "Name"), b.Name)
		}
		floor := at.At(i, "MinTokens")
		switch {
		case !invalid.Within(ps, floor, b.MinTokens, 0, int64(fairqueue.MaxCost)):
		case i == 0 && b.MinTokens != 0:
			ps.Add(floor, b.MinTokens, "must be 0 in the first bucket: every request has one")
		case i > 0 && b.MinTokens <= r.Buckets[i-1].MinTokens:
			ps.Add(floor, b.MinTokens, "must be above that of the bucket before (%d)", r.Buckets[i-1].MinTokens)
		}
	}
}

func (r *Ring) checkClasses(ps *invalid.Problems, at invalid.Path, classes []Class, model string, families []string) {
	buckets := make([]string, len(r.Buckets))
	for i, b := range r.Buckets {
		buckets[i] = b.Name
	}
	cells := map[[2]string]string{}
	for i, c := range classes {
		class := invalid.At("Classes", i)
		switch {
		case c.Model != model:
			continue
		case c.Family == "" && c.Bucket == "":
			if slices.Contains(families, c.Name) {
				ps.Add(class.At("Name"), c.Name, "must not be the name of a family, since requests could not tell them apart")
			}
			continue
		case c.Family == "":
			ps.Add(class.At("Family"), c.Family, "must be given with %s", class.At("Bucket"))
			continue
		case c.Bucket == "":
			ps.Add(class.At("Bucket"), c.Bucket, "must be given with %s", class.At("Family"))
			continue
		}
		checkWord(ps, class.At("Family"), c.Family)
		if len(buckets) == 0 || !invalid.OneOf(ps, class.At("Bucket"), c.Bucket, buckets) {
			continue
		}
		cell := [2]string{c.Family, c.Bucket}
		if other, twice := cells[cell]; twice {
			ps.Add(class.At("Bucket"), c.Bucket, "must be in one class of the family %q only, and is in %q too", c.Family, other)
			continue
		}
		cells[cell] = c.Name
	}
	for _, family := range families {
		for _, bucket := range buckets {
			if _, ok := cells[[2]string{family, bucket}]; !ok {
				ps.Add(at.At("Buckets"), nil, "must each have a class of every family: %q has none in the family %q", bucket, family)
				return // one problem for each field is enough
			}
		}
	}
}

// checkWord checks the name of a family or a bucket, which is written like a class's.
func checkWord(ps *invalid.Problems, at invalid.Path, name string) {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	}):
		ps.Add(at, name, "must consist of letters, digits, '_', '.' and '-'")
	case len(name) > fairqueue.MaxClassName:
		ps.Add(at, name, "must have at most %d bytes, not %d", fairqueue.MaxClassName, len(name))
	}
}

// ring is a Ring in the form for reading. Without families the named class is used as it is.
type ring struct {
	explicit map[string]bool     // the explicit classes
	families map[string][]string // the classes of each family, by bucket
	floors   []int64             // of the buckets
	unnamed  []string            // those of the default family
}

func newRing(r *Ring, classes []Class, model string) *ring {
	c := &ring{explicit: map[string]bool{}, families: map[string][]string{}}
	bucket := map[string]int{}
	for i, b := range r.Buckets {
		c.floors = append(c.floors, b.MinTokens)
		bucket[b.Name] = i
	}
	for _, class := range classes {
		switch {
		case class.Model != model:
			continue
		case class.Family == "":
			c.explicit[class.Name] = true
			continue
		}
		if c.families[class.Family] == nil {
			c.families[class.Family] = make([]string, len(c.floors))
		}
		c.families[class.Family][bucket[class.Bucket]] = class.Name
	}
	c.unnamed = c.families[r.DefaultFamily]
	return c
}

func (r *Rules) compileRings() {
	r.ring, r.modelRings = newRing(&r.cfg.Ring, r.cfg.Classes, ""), map[string]*ring{}
	for _, class := range r.cfg.Classes {
		if m := class.Model; m != "" && r.modelRings[m] == nil {
			own := r.cfg.ModelRings[m]
			r.modelRings[m] = newRing(&own, r.cfg.Classes, m)
		}
	}
}

// class returns the class of a request by its named class or family, which may be unknown or "", and its uncached
// tokens.
func (c *ring) class(named string, uncached int64) string {
	classes, family := c.families[named]
	switch {
	case c.explicit[named] || len(c.unnamed) == 0:
		return named
	case !family:
		classes = c.unnamed
	}
	n := len(c.floors) - 1
	for n > 0 && c.floors[n] > uncached {
		n--
	}
	return classes[n]
}

// knows reports whether a name is an explicit class or a family. It is not called without classes.
func (c *ring) knows(named string) bool {
	return c.explicit[named] || c.families[named] != nil
}
