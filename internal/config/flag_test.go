package config

import (
	"strings"
	"testing"
)

// A given flag changes its key and its derived values, like a line of the file. The others change nothing.
func TestFlags(t *testing.T) {
	from, err := Profile(ProfileRecommended)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Flag{}
	for _, flag := range Flags(&from) {
		byName[flag.Name] = flag
		if strings.ContainsAny(flag.Usage, "<>") || flag.Usage == "" {
			t.Errorf("--%s: %s", flag.Name, flag.Usage)
		}
	}
	watermark, lower := byName["watermark-per-backend"], byName["lower-bound-per-backend"]
	if bound, ok := lower.Value.(*int64); !ok || *bound != 0 {
		t.Errorf("a key that may be null has the default %v", lower.Value)
	}
	if !strings.Contains(watermark.Usage, "`requests`") || byName["num-poppers"].Page != PageRare {
		t.Errorf("%+v, %+v", watermark, byName["num-poppers"])
	}
	*watermark.Value.(*int64), *lower.Value.(*int64) = 9, 8
	for _, test := range []struct {
		given []Flag
		want  string
	}{
		{nil, ""},
		{[]Flag{watermark}, "requestQueueController: { watermarkPerBackend: 9 }"},
		{[]Flag{watermark, lower}, "requestQueueController: { watermarkPerBackend: 9, lowerBoundPerBackend: 8 }"},
	} {
		want, err := Load(Source{Text: []byte(test.want)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(Source{Override: func(d *Document) { Override(d, &from, test.given) }})
		if changed := Changed(want, got); err != nil || len(changed) > 0 {
			t.Errorf("%q: %v, %v", test.want, changed, err)
		}
	}
}
