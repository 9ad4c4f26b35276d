package request

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// dynamoRing has the families standard and batch in two buckets, and the explicit class probes.
func dynamoRing() Ring {
	return Ring{
		DefaultFamily: "standard",
		Buckets:       []Bucket{{0, "cached"}, {3072, "uncached"}},
		Classes: []RingClass{
			{"std-cached", "standard", "cached"}, {"std-uncached", "standard", "uncached"},
			{"batch-cached", "batch", "cached"}, {"batch-uncached", "batch", "uncached"},
			{Name: "probes"},
		},
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
		s.cfg.Ring = dynamoRing()
		r := s.must(t)
		r.Classify(c.uncached)
		if r.Class == nil || r.Class.Class != c.want || r.UnknownClass != c.unknown {
			t.Errorf("%q with %d uncached tokens: class %+v, unknown %t; want %q, %t", c.header, c.uncached, r.Class, r.UnknownClass, c.want, c.unknown)
		}
	}
}

// A model's classes replace the others whole; floors of 0 and 64 as the released service has them.
func TestClassesOfAModel(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PolicyClass = PolicyClass{Headers: []string{"x-class"}}
	cfg.Ring = dynamoRing()
	cfg.ModelRings = map[string]Ring{"m": {
		DefaultFamily: "all", Buckets: []Bucket{{0, "short"}, {64, "long"}},
		Classes: []RingClass{{"m-short", "all", "short"}, {"m-long", "all", "long"}},
	}, "plain": {Classes: []RingClass{{Name: "one"}, {Name: "two"}}}}
	for _, c := range []struct {
		model, named string
		uncached     int64
		want         string
	}{
		{"m", "batch", 63, "m-short"}, {"m", "batch", 64, "m-long"}, {"m", "", 64, "m-long"},
		{"other", "batch", 64, "batch-cached"}, {"", "", 4000, "std-uncached"},
		{"plain", "two", 4000, "two"}, {"plain", "batch", 4000, "batch"}, // the queue knows no such class: the first
	} {
		r := (&sent{cfg: cfg, headers: chat("x-gateway-model-name", c.model, "x-class", c.named)}).must(t)
		r.Classify(c.uncached)
		if r.Class.Class != c.want {
			t.Errorf("%+v: class %q", c, r.Class.Class)
		}
	}
}

// Without families a request's class stays as it names it, and one that names nothing has none.
func TestClassWithoutFamilies(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PolicyClass = PolicyClass{Headers: []string{"x-class"}}
	two := cfg
	two.Ring = Ring{Classes: []RingClass{{Name: "a"}, {Name: "b"}}}
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

// Every mistake in families and buckets is told, with its field.
func TestRingProblems(t *testing.T) {
	for want, change := range map[string]func(*Ring){
		`Ring.Classes: must have a class of the family "batch" in the bucket "uncached"`: func(r *Ring) {
			r.Classes = append(r.Classes[:3:3], r.Classes[4])
		},
		`Ring.Classes[1].Bucket: "cached": must be in one class of the family "standard" only, and is in "std-cached" too`: func(r *Ring) {
			r.Classes[1].Bucket = "cached"
		},
		`Ring.Classes[0].Family: "invalid/family": must consist of letters, digits, '_', '.' and '-'`: func(r *Ring) {
			r.Classes[0].Family, r.Classes[1].Family, r.DefaultFamily = "invalid/family", "invalid/family", "invalid/family"
		},
		`Ring.Classes[0].Bucket: "warm": must be one of cached, uncached`:       func(r *Ring) { r.Classes[0].Bucket = "warm" },
		`Ring.Classes[2].Bucket: "": must be given with Ring.Classes[2].Family`: func(r *Ring) { r.Classes[2].Bucket = "" },
		`Ring.Classes[2].Family: "": must be given with Ring.Classes[2].Bucket`: func(r *Ring) { r.Classes[2].Family = "" },
		`Ring.Classes[4].Name: "batch": must not be the name of a family, since requests could not tell them apart`: func(r *Ring) {
			r.Classes[4].Name = "batch"
		},
		`Ring.Buckets[0].MinTokens: 1: must be 0 in the first bucket: every request has one`: func(r *Ring) { r.Buckets[0].MinTokens = 1 },
		`Ring.Buckets[1].Name: "cached": must be unique`:                                     func(r *Ring) { r.Buckets[1].Name = "cached" },
		`Ring.Buckets[1].Name: "a b": must consist of letters, digits, '_', '.' and '-'`:     func(r *Ring) { r.Buckets[1].Name = "a b" },
		`Ring.Buckets[1].MinTokens: 1073741825: must be from 0 to 1073741824`:                func(r *Ring) { r.Buckets[1].MinTokens = 1<<30 + 1 },
		`Ring.Buckets[2].MinTokens: 32: must be above that of the bucket before (64)`: func(r *Ring) {
			r.Buckets = []Bucket{{0, "cached"}, {64, "uncached"}, {32, "third"}}
		},
		`Ring.Buckets[1].MinTokens: 0: must be above that of the bucket before (0)`: func(r *Ring) { r.Buckets[1].MinTokens = 0 },
		`Ring.DefaultFamily: "standrd": must be one of batch, standard`:             func(r *Ring) { r.DefaultFamily = "standrd" },
		`Ring.DefaultFamily: "": must be one of batch, standard`:                    func(r *Ring) { r.DefaultFamily = "" },
		`Ring.DefaultFamily: "probes": must be one of batch, standard`:              func(r *Ring) { r.DefaultFamily = "probes" },
		`Ring.Buckets: []: must have a bucket: a class has a family`:                func(r *Ring) { r.Buckets = nil },
		`Ring.DefaultFamily: "standard": must be a family, and no class has one`:    func(r *Ring) { r.Classes = r.Classes[4:] },
	} {
		ring := dynamoRing()
		change(&ring)
		cfg, in := DefaultConfig(), DefaultConfig()
		cfg.Ring, in.ModelRings = ring, map[string]Ring{"m": ring}
		err, inModel := cfg.Validate(), in.Validate()
		if err == nil || !strings.Contains(err.Error()+"\n", want+"\n") {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
		if where := strings.ReplaceAll(want, "Ring.", `ModelRings["m"].`); inModel == nil || !strings.Contains(inModel.Error()+"\n", where+"\n") {
			t.Errorf("got\n%v\nwant\n%s", inModel, where)
		}
	}
	cfg := DefaultConfig()
	if cfg.Ring = dynamoRing(); cfg.Validate() != nil {
		t.Error(cfg.Validate())
	}
}
