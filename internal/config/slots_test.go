package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/stock"
)

// slotsPerBackend is a number or the word unbounded. The word reads back, and gets one warning.
func TestUnboundedSlots(t *testing.T) {
	for _, profile := range []string{"recommended", "wfq", "dynamo-drr", "smg-priority"} {
		d, err := Load(source("profile: " + profile + "\nrequestQueueController: { slotsPerBackend: unbounded }"))
		if err != nil {
			t.Fatalf("%s: %v", profile, err)
		}
		if cfg := d.FlowcontrolConfig().Stock; !cfg.Unbounded {
			t.Errorf("%s: %+v", profile, cfg)
		}
		for _, marshal := range []func(Document) ([]byte, error){Document.Marshal, Document.MarshalOverlay} {
			text, err := marshal(d)
			if err != nil || !strings.Contains(string(text), "slotsPerBackend: unbounded\n") {
				t.Errorf("%s: %v, written as\n%s", profile, err, text)
			}
			again, err := Load(source(string(text)))
			if cfg := again.FlowcontrolConfig().Stock; err != nil || !cfg.Unbounded {
				t.Errorf("%s: %v, read again as %+v", profile, err, cfg)
			}
		}
		warnings := d.Warnings()
		if len(warnings) != 1 || warnings[0].Path != "requestQueueController.slotsPerBackend" ||
			!strings.HasPrefix(warnings[0].Message, "unbounded: while a backend is ready, requests wait only for a cap") {
			t.Errorf("%s: warned %v", profile, warnings)
		}
	}
}

// With slotsPerBackend auto the bounds follow the engines. Given numbers stay.
func TestAutomaticSlots(t *testing.T) {
	for text, want := range map[string]struct {
		follow bool
		warns  string
	}{
		"slotsPerBackend: auto":                          {true, ""},
		"slotsPerBackend: 'auto'":                        {true, ""},
		"slotsPerBackend: auto, watermarkPerBackend: 31": {false, "slotsPerBackend: auto: has no effect"},
		"slotsPerBackend: auto, watermarkPerBackend: 70, lowerBoundPerBackend: 66, upperBoundPerBackend: 80": {
			false, "lowerBoundPerBackend: 66: under load",
		},
	} {
		for _, profile := range []string{"recommended", "wfq", "dynamo-drr"} {
			if profile != "recommended" && strings.Contains(text, "PerBackend: 31") {
				continue // the profile's own lower bound would be above it
			}
			d, err := Load(source("profile: " + profile + "\nrequestQueueController: { " + text + " }"))
			if profile == "recommended" && strings.Contains(text, "PerBackend: 31") {
				d, err = Load(source("profile: wfq\nrequestQueueController: { " + text + " }"))
			}
			if err != nil {
				t.Fatalf("%s, %s: %v", profile, text, err)
			}
			cfg := d.FlowcontrolConfig().Stock
			if cfg.Follow != want.follow || cfg.SlotsPerBackend != 0 || cfg.Unbounded || cfg.Validate() != nil {
				t.Errorf("%s, %s: %+v", profile, text, cfg)
			}
			if want.follow {
				if b := cfg.BoundsOf(stock.Backend{}).Requests; b.Lower != 64*stock.One || b.Upper != b.Lower || b.Watermark != b.Lower {
					t.Errorf("%s: begins with %+v", profile, b)
				}
			}
			written, err := d.Marshal()
			if again, err2 := Load(source(string(written))); err != nil || err2 != nil || again.FlowcontrolConfig().Stock != cfg {
				t.Errorf("%s, %s: %v, %v, written as\n%s", profile, text, err, err2, written)
			}
			w := d.Warnings()
			if warned := slices.ContainsFunc(w, func(p Problem) bool { return strings.Contains(p.Error(), want.warns) }); want.warns != "" && !warned {
				t.Errorf("%s, %s: warned %v", profile, text, w)
			}
			if slices.ContainsFunc(w, func(p Problem) bool { return strings.Contains(p.Error(), "PerBackend") }) && want.warns == "" {
				t.Errorf("%s, %s: warned %v", profile, text, w)
			}
		}
	}
}

// With recommended the default of slots is auto. A watermark or a bound in a file or a flag stays, even the profile's
// own number, and no warning mentions the replaced auto.
func TestRecommendedFindsTheSlots(t *testing.T) {
	d, err := Load(source("profile: recommended"))
	if cfg := d.FlowcontrolConfig().Stock; err != nil || !cfg.Follow {
		t.Fatalf("%v: %+v", err, cfg)
	}
	const all = "watermarkPerBackend: 64, lowerBoundPerBackend: 64, upperBoundPerBackend: 64"
	for text, want := range map[string]stock.Micro{
		all: 64 * stock.One, "upperBoundPerBackend: 64": 64 * stock.One, "lowerBoundPerBackend: 64": 64 * stock.One,
		"slotsPerBackend: 24": 24 * stock.One, "slotsPerBackend: null": 64 * stock.One,
		"watermarkPerBackend: 24, lowerBoundPerBackend: 24, upperBoundPerBackend: 24": 24 * stock.One,
	} {
		d, err := Load(source("profile: recommended\nrequestQueueController: { " + text + " }"))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		cfg := d.FlowcontrolConfig().Stock
		if b := cfg.BoundsOf(stock.Backend{}).Requests; cfg.Follow || b.Upper != want || b.Lower != want {
			t.Errorf("%s: %+v", text, cfg)
		}
		if w := d.Warnings(); len(w) > 0 {
			t.Errorf("%s: warned %v", text, w)
		}
		for _, marshal := range []func(Document) ([]byte, error){Document.Marshal, Document.MarshalOverlay} {
			written, err := marshal(d)
			if again, err2 := Load(source(string(written))); err != nil || err2 != nil || again.FlowcontrolConfig().Stock != cfg {
				t.Errorf("%s: %v, %v, written as\n%s", text, err, err2, written)
			}
		}
	}
	var from Document
	for _, f := range Flags(&from) {
		if f.Name != "upper-bound-per-backend" {
			continue
		}
		*f.Value.(*int64) = 70
		d, err := Load(Source{Text: []byte("profile: recommended"), Override: func(to *Document) { Override(to, &from, []Flag{f}) }})
		if cfg := d.FlowcontrolConfig().Stock; err != nil || cfg.Follow || cfg.BoundsOf(stock.Backend{}).Requests.Upper != 70*stock.One {
			t.Errorf("--%s: %v, %+v", f.Name, err, cfg)
		}
	}
}

// There is no warning if requests wait for another reason, or if nothing would wait without it.
func TestUnboundedIsWarnedAboutWhereNothingWaits(t *testing.T) {
	for _, more := range []string{"watermarkTokensPerBackend: 1000", "enabled: false"} {
		d, err := Load(source("profile: recommended\nrequestQueueController: { slotsPerBackend: unbounded, " + more + " }"))
		if err != nil {
			t.Fatal(err)
		}
		if w := d.Warnings(); slices.ContainsFunc(w, func(p Problem) bool { return strings.HasSuffix(p.Path, "slotsPerBackend") }) {
			t.Errorf("%s: %v", more, w)
		}
	}
}

func TestBadSlots(t *testing.T) {
	for text, want := range map[string]string{
		"-1": "-1: must be from 1 to 1000000", "0": "0: must be from 1 to 1000000", "1000001": "1000001: must be from 1 to 1000000",
		"Unbounded": `"Unbounded": must be a whole number, auto or unbounded`, "many": `"many": must be a whole number, auto or unbounded`,
		"'64'": `"64": must be a whole number, auto or unbounded`, "1.5": "1.5: must be a whole number, auto or unbounded",
		"-9223372036854775808": "must be a whole number, auto or unbounded", "99999999999999999999": "must be a whole number, auto or unbounded",
		"[]": "must be a whole number, auto or unbounded",
	} {
		_, err := Load(source("requestQueueController: { slotsPerBackend: " + text + " }"))
		if err == nil || !strings.Contains(err.Error(), "requestQueueController.slotsPerBackend: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
