package config

import (
	"slices"
	"strings"
	"testing"
)

// Keys of their values without an effect have a note each, whatever their value is, and so has a duplicate flag. The
// keys beside them are converted.
func TestImportLLMDNotesWhatItLeavesOut(t *testing.T) {
	for text, want := range map[string][]string{
		"inferenceExtension: { tracing: { enabled: true, otelExporterEndpoint: 'http://c:4317', serviceName: epp, image: { tag: a }, sampling: { rate: 1 } } }": {
			"tracing.serviceName: ignored", "tracing.image: ignored", "tracing.sampling.rate: ignored",
		},
		"inferenceExtension: { sidecar: { enabled: true, name: envoy, configMap: { name: a }, resources: {}, livenessProbe: {} } }": {
			"sidecar.configMap: ignored: the chart has an Envoy of its own", "sidecar.resources: ignored", "sidecar.livenessProbe: ignored",
		},
		"inferenceExtension: { flags: [ { name: v, value: 3, valueFrom: { fieldRef: {} }, of: a } ] }": {
			"flag --v: its valueFrom, of is ignored: only name and value count",
		},
		"inferenceExtension: { flags: [ { name: v, value: 3 }, { name: v, value: 4 } ] }": {
			"flag --v: is there more than once: the last value counts",
		},
		"inferenceExtension: { tracing: { enabled: false, serviceName: epp }, sidecar: { enabled: false, name: envoy, resources: {} } }": nil,
	} {
		im, err := ImportLLMD([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, note := range want {
			if !slices.ContainsFunc(im.Notes, func(n string) bool { return strings.HasPrefix(n, note) }) {
				t.Errorf("%s: no note %q in %q", text, note, im.Notes)
			}
		}
		if len(im.Notes) != len(want) {
			t.Errorf("%s: notes %q", text, im.Notes)
		}
	}
	im, err := ImportLLMD([]byte("inferenceExtension: { sidecar: { enabled: true, name: envoy, resources: {} }, flags: [ { name: v, value: 3 }, { name: v, value: 4 } ] }"))
	if err != nil || im.Values["verbosity"] != 4 || im.Values["envoy"].(map[string]any)["mode"] != "sidecar" {
		t.Errorf("%+v, %v", im.Values, err)
	}
}

// A text is not a boolean, since a template takes any text as true. The name of a flag is a single word.
func TestImportLLMDRefusesTexts(t *testing.T) {
	for text, want := range map[string]string{
		"inferenceExtension: { sidecar: { enabled: 'true', name: envoy } }":  `inferenceExtension.sidecar.enabled: "true": must be true or false, without quotes`,
		"inferenceExtension: { tracing: { enabled: 'true' } }":               `inferenceExtension.tracing.enabled: "true": must be true or false`,
		"router: { proxy: { enabled: 'false' } }":                            `router.proxy.enabled: "false": must be true or false`,
		"router: {}\nhttpRoute: { create: 'true' }":                          `httpRoute.create: "true": must be true or false`,
		"inferencePool: { create: [] }":                                      `inferencePool.create: "a list": must be true or false`,
		"inferenceExtension: { flags: [ { name: \"a\\n--b\", value: 1 } ] }": `inferenceExtension.flags[0].name: "a\n--b": must be the name of a flag`,
		"inferenceExtension: { flags: { \"a\\n--b\": 1 } }":                  `inferenceExtension.flags: "a\n--b": must be the name of a flag`,
		"inferenceExtension: { flags: { a=b: 1 } }":                          `inferenceExtension.flags: "a=b": must be the name of a flag`,
	} {
		if _, err := ImportLLMD([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
