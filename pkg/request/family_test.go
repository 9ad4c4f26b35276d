package request

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// inFamilies has the families standard and batch in two buckets, and the explicit class probes.
func inFamilies(c *Config) {
	c.Ring = Ring{DefaultFamily: "standard", Buckets: []Bucket{{0, "cached"}, {3072, "uncached"}}}
	c.Classes = []Class{
		{"", "std-cached", "standard", "cached"},
		{"", "std-uncached", "standard", "uncached"},
		{"", "batch-cached", "batch", "cached"},
		{"", "batch-uncached", "batch", "uncached"},
		{Name: "probes"},
	}
}

// A request's class is the explicit one that it names, or its family's in the bucket of its uncached tokens. A client
// cannot choose its bucket: a matrix class's own name means the default family, as any unknown name does.
func TestClassOfAFamily(t *testing.T) {
	for _, c := range []struct {
		header   string
		uncached int64
		want     string
		unknown  bool
	}{
		{"", 3071, "std-cached", false},
		{"", 3072, "std-uncached", false},
		{"", 0, "std-cached", false},
		{"", 1 << 40, "std-uncached", false},
		{"batch", 3071, "batch-cached", false},
		{"batch", 3072, "batch-uncached", false},
		{" batch\t", 5000, "batch-uncached", false},
		{"probes", 5000, "probes", false},
		{"std-uncached", 10, "std-cached", true},
		{"batch-uncached", 5000, "std-uncached", true},
		{"Batch", 10, "std-cached", true},
		{"nobody", 5000, "std-uncached", true},
		{strings.Repeat("x", fairqueue.MaxClassName+1), 5000, "std-uncached", false}, // kept nowhere
	} {
		s := sent{cfg: DefaultConfig(), headers: chat()}
		if c.header != "" { // of two values the first counts
			s.headers = chat("x-dynamo-meta-policy-class", c.header, "x-dynamo-meta-policy-class", "batch")
		}
		withPolicyClass(&s.cfg)
		inFamilies(&s.cfg)
		r := s.must(t)
		r.Classify(c.uncached)
		if r.Class == nil || r.Class.Class != c.want || r.UnknownClass != c.unknown {
			t.Errorf("%q with %d uncached tokens: class %+v, unknown %t; want %q, %t", c.header, c.uncached, r.Class, r.UnknownClass, c.want, c.unknown)
		}
	}
}

// A model's classes replace all others; floors of 0 and 64 are as in the released service.
func TestClassesOfAModel(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PolicyClass = PolicyClass{Headers: []string{"x-class"}}
	inFamilies(&cfg)
	cfg.ModelRings = map[string]Ring{"m": {DefaultFamily: "all", Buckets: []Bucket{{0, "short"}, {64, "long"}}}}
	cfg.Classes = append(cfg.Classes, Class{"m", "m-short", "all", "short"}, Class{"m", "m-long", "all", "long"},
		Class{Model: "plain", Name: "one"}, Class{Model: "plain", Name: "two"})
	for _, c := range []struct {
		model, named string
		uncached     int64
		want         fairqueue.Path
	}{
		{"m", "batch", 63, fairqueue.Path{Ring: "m", Class: "m-short"}},
		{"m", "batch", 64, fairqueue.Path{Ring: "m", Class: "m-long"}},
		{"m", "", 64, fairqueue.Path{Ring: "m", Class: "m-long"}},
		{"other", "batch", 64, fairqueue.Path{Class: "batch-cached"}},
		{"x", "", 4000, fairqueue.Path{Class: "std-uncached"}},
		{"plain", "two", 4000, fairqueue.Path{Ring: "plain", Class: "two"}},
		{"plain", "", 4000, fairqueue.Path{Ring: "plain"}},
		{"plain", "batch", 4000, fairqueue.Path{Ring: "plain", Class: "batch"}}, // the queue knows no such class: the first
	} {
		r := (&sent{cfg: cfg, headers: chat("x-gateway-model-name", c.model, "x-class", c.named)}).must(t)
		r.Classify(c.uncached)
		if got := *r.Class; got.Ring != c.want.Ring || got.Class != c.want.Class {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	s := sent{cfg: cfg, headers: chat("x-class", "batch"), mode: Buffered, body: `{"model":"m","messages":[]}`}
	s.cfg.FlowKey, s.cfg.RoutesByModel = []string{"header:x-tenant"}, false // nothing else needs the model
	if r := s.must(t); !s.needed {
		t.Error("the body is not read for the model")
	} else if r.Classify(64); r.Class.Ring != "m" || r.Class.Class != "m-long" {
		t.Errorf("%+v", r.Class)
	}
}

// Without families a request has the class that it names, or none.
func TestClassWithoutFamilies(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PolicyClass = PolicyClass{Headers: []string{"x-class"}}
	two := cfg
	two.Classes = []Class{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		cfg     Config
		named   string
		unknown bool
	}{{cfg, "", false}, {cfg, "b", false}, {two, "", false}, {two, "b", false}, {two, "c", true}} {
		r := (&sent{cfg: c.cfg, headers: chat("x-class", c.named)}).must(t)
		r.Classify(5)
		if r.UnknownClass != c.unknown || (r.Class == nil) != (c.named == "") || r.Class != nil && r.Class.Class != c.named {
			t.Errorf("%q: %+v, %t", c.named, r.Class, r.UnknownClass)
		}
	}
}

// Every mistake in families and buckets of every ring is reported with its field.
func TestRingProblems(t *testing.T) {
	for want, change := range map[string]func(*Config, *Ring){
		`Ring.Buckets: must each have a class of every family: "uncached" has none in the family "batch"`: func(c *Config, _ *Ring) {
			c.Classes = append(c.Classes[:3:3], c.Classes[4])
		},
		`Classes[1].Bucket: "cached": must be in one class of the family "standard" only, and is in "std-cached" too`: func(c *Config, _ *Ring) {
			c.Classes[1].Bucket = "cached"
		},
		`Classes[0].Family: "invalid/family": must consist of letters, digits, '_', '.' and '-'`: func(c *Config, r *Ring) {
			c.Classes[0].Family, c.Classes[1].Family, r.DefaultFamily = "invalid/family", "invalid/family", "invalid/family"
		},
		`Classes[0].Bucket: "warm": must be one of cached, uncached`:  func(c *Config, _ *Ring) { c.Classes[0].Bucket = "warm" },
		`Classes[2].Bucket: "": must be given with Classes[2].Family`: func(c *Config, _ *Ring) { c.Classes[2].Bucket = "" },
		`Classes[2].Family: "": must be given with Classes[2].Bucket`: func(c *Config, _ *Ring) { c.Classes[2].Family = "" },
		`Classes[4].Name: "batch": must not be the name of a family, since requests could not tell them apart`: func(c *Config, _ *Ring) {
			c.Classes[4].Name = "batch"
		},
		`Ring.Buckets[0].MinTokens: 1: must be 0 in the first bucket: every request has one`: func(_ *Config, r *Ring) { r.Buckets[0].MinTokens = 1 },
		`Ring.Buckets[1].Name: "cached": must be unique`:                                     func(_ *Config, r *Ring) { r.Buckets[1].Name = "cached" },
		`Ring.Buckets[1].Name: "a b": must consist of letters, digits, '_', '.' and '-'`:     func(_ *Config, r *Ring) { r.Buckets[1].Name = "a b" },
		`Ring.Buckets[1].MinTokens: 1073741825: must be from 0 to 1073741824`:                func(_ *Config, r *Ring) { r.Buckets[1].MinTokens = 1<<30 + 1 },
		`Ring.Buckets[2].MinTokens: 32: must be above that of the bucket before (64)`: func(_ *Config, r *Ring) {
			r.Buckets = []Bucket{{0, "cached"}, {64, "uncached"}, {32, "third"}}
		},
		`Ring.Buckets[1].MinTokens: 0: must be above that of the bucket before (0)`: func(_ *Config, r *Ring) { r.Buckets[1].MinTokens = 0 },
		`Ring.DefaultFamily: "standrd": must be one of batch, standard`:             func(_ *Config, r *Ring) { r.DefaultFamily = "standrd" },
		`Ring.DefaultFamily: "": must be one of batch, standard`:                    func(_ *Config, r *Ring) { r.DefaultFamily = "" },
		`Ring.DefaultFamily: "probes": must be one of batch, standard`:              func(_ *Config, r *Ring) { r.DefaultFamily = "probes" },
		`Ring.Buckets: []: must have a bucket: a class has a family`:                func(_ *Config, r *Ring) { r.Buckets = nil },
		`Ring.DefaultFamily: "standard": must be a family, and no class has one`:    func(c *Config, _ *Ring) { c.Classes = c.Classes[4:] },
		`Ring.Buckets: 2 buckets: must be empty: no class has a family`:             func(c *Config, _ *Ring) { c.Classes = c.Classes[4:] },
	} {
		cfg := DefaultConfig()
		inFamilies(&cfg)
		change(&cfg, &cfg.Ring)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error()+"\n", want+"\n") {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
		// The same in the ring of a model, before which the classes of other models stand.
		cfg = DefaultConfig()
		inFamilies(&cfg)
		ring := cfg.Ring
		cfg.Ring = Ring{}
		change(&cfg, &ring)
		cfg.ModelRings = map[string]Ring{"m": ring}
		for i := range cfg.Classes {
			cfg.Classes[i].Model = "m"
		}
		cfg.Classes = append(cfg.Classes, Class{Name: "others"})
		want = strings.ReplaceAll(want, "Ring.", `ModelRings["m"].`)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error()+"\n", want+"\n") {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	}
	cfg := DefaultConfig()
	if inFamilies(&cfg); cfg.Validate() != nil {
		t.Error(cfg.Validate())
	}
	cfg.Classes, cfg.Ring = []Class{{Model: "m", Name: "a"}}, Ring{}
	cfg.ModelRings = map[string]Ring{"n": {}}
	want := "Classes[0].Model: \"m\": needs a class without Classes[0].Model, for the other models\nModelRings[\"n\"]: \"n\": must be the model of a class"
	if err := cfg.Validate(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
