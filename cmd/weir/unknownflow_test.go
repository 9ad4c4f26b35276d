package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/status"
)

// A name that no flow has is told with the active flows, five at most and each once.
func TestUnknownFlow(t *testing.T) {
	flows := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := status.Document{Schema: status.Schema}
		for i := range flows {
			d.Flows = append(d.Flows, status.Flow{Flow: fmt.Sprint("f", i), Tier: "a"}, status.Flow{Flow: fmt.Sprint("f", i), Tier: "b"})
		}
		if r.URL.Query().Get("flow") != "" {
			d.Flows = nil
		}
		text, err := d.Encode()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(s.Close)
	for n, want := range map[int]string{
		0: `no flow has "x" in its name, and none is active`,
		5: `no flow has "x" in its name; active are f0, f1, f2, f3, f4`,
		6: `no flow has "x" in its name; active are f0, f1, f2, f3, f4 and 1 more`,
	} {
		flows = n
		if got := unknownFlow(t.Context(), []string{strings.TrimPrefix(s.URL, "http://")}, "x"); got != want {
			t.Errorf("%d flows: %s", n, got)
		}
	}
	if got := unknownFlow(t.Context(), []string{"127.0.0.1:1"}, "x"); got != "" {
		t.Errorf("no replica answers: %s", got)
	}
}
