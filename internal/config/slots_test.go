package config

import (
	"slices"
	"strings"
	"testing"
)

// slotsPerBackend is a number or the word unbounded, which survives being written, and is warned about once.
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
			!strings.HasPrefix(warnings[0].Message, "unbounded: while a backend is ready no request waits") {
			t.Errorf("%s: warned %v", profile, warnings)
		}
	}
}

// Where something else makes requests wait, or nothing would without it, there is no warning.
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
		"Unbounded": `"Unbounded": must be a whole number or unbounded`, "many": `"many": must be a whole number or unbounded`,
		"'64'": `"64": must be a whole number or unbounded`, "1.5": "1.5: must be a whole number or unbounded",
		"-9223372036854775808": "must be a whole number or unbounded", "99999999999999999999": "must be a whole number or unbounded",
		"[]": "must be a whole number or unbounded",
	} {
		_, err := Load(source("requestQueueController: { slotsPerBackend: " + text + " }"))
		if err == nil || !strings.Contains(err.Error(), "requestQueueController.slotsPerBackend: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
