package app

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// inSessions are options with three endpoints, and affinity by a header.
func inSessions(more string) Options {
	o := testOptions()
	o.Endpoints = []string{"192.0.2.1:8000", "192.0.2.2:8000", "192.0.2.3:8000"}
	o.ConfigText = "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\nscheduling: { affinity: session, affinitySession: \"header:x-session\" }\n" + more
	return o
}

// A session goes where it went before, while that is no fuller than elsewhere; its requests are counted in tokens, and in a
// recording the reason can be read.
func TestSessionsGoWhereTheyWere(t *testing.T) {
	o := inSessions("")
	o.Record = 1
	r := start(t, o)
	went := map[string]string{}
	for turn := range 4 {
		for i := range 5 {
			name := fmt.Sprint("s", i)
			stream := r.request(t.Context(), [2]string{"x-session", name}, [2]string{"x-request-id", fmt.Sprint(name, " turn ", turn)})
			at := granted(t, stream)
			if turn > 0 && at != went[name] {
				t.Errorf("turn %d of %s went to %s, and the last to %s", turn, name, at, went[name])
			}
			went[name] = at
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the request is over", func() bool {
				_, text := r.get("/metrics")
				return regexp.MustCompile(`(?m)^weir_stock_level\{.*\} 1$`).FindString(text) == ""
			})
		}
	}
	_, text := r.get("/metrics")
	for _, line := range []string{
		`weir_affinity_tokens_total{kind="prompt"} 20000`, `weir_affinity_tokens_total{kind="best"} 15000`,
		`weir_affinity_tokens_total{kind="chosen"} 15000`, `weir_affinity_nodes 5`, `weir_affinity_blocks 5`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	_, file := r.debug("/debug/recording")
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	said, err := format.Explain(strings.NewReader(file), "s1 turn 3")
	if err != nil || !strings.Contains(said, "1000 tokens cached") {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err := format.Replay(strings.NewReader(file)); err != nil {
		t.Error(err)
	}
}
