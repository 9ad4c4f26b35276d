package envoyrun

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// usage.yaml, the name in other pages and in users' files, is the recommended configuration.
func TestUsageIsRecommended(t *testing.T) {
	if !reflect.DeepEqual(shippedFile(t, "usage"), shippedFile(t, "recommended")) {
		t.Error("usage.yaml differs from recommended.yaml in more than its comments")
	}
}

// The files for several clients read the usage alike, each API's answers in its form. They differ only in the clients.
func TestWhoReadsUsage(t *testing.T) {
	for _, config := range []string{"api-keys", "jwt"} {
		got, want := shippedFile(t, config), shippedFile(t, "recommended")
		for _, part := range [][2]any{
			{got.routes()[1:], want.routes()}, // the first is for unknown clients
			{got.upstream(), want.upstream()},
			{got.forwarded()["typed"], want.forwarded()["typed"]},
		} {
			if !reflect.DeepEqual(part[0], part[1]) || part[0] == nil {
				t.Errorf("%s has %v, recommended.yaml %v", config, part[0], part[1])
			}
		}
	}
}

// One Edit adds the filter and the other removes it, whole. Without a place for it, both return an error.
func TestUsageIsAddedAndTakenOut(t *testing.T) {
	b := shippedFile(t, "recommended")
	mentions := func(what string) bool {
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), what)
	}
	if err := WithoutUsage(b); err != nil || mentions("ai_protocol_manager") || mentions(usageNamespace) {
		t.Errorf("%v; something is left of it: %v", err, b)
	}
	if err := WithoutUsage(b); err == nil {
		t.Error("it was removed from a configuration without it")
	}
	if err := ReadUsage(b); err != nil || !mentions("SYNTHESIZE_TRAILERS") || !mentions(usageNamespace) {
		t.Errorf("%v; something of it is missing: %v", err, b)
	}
	if err := ReadUsage(shippedFile(t, "direct")); err == nil {
		t.Error("it was added where Weir is not")
	}
}

// A change of the route to the model servers changes each of the routes there.
func TestRouteIsThatOfEach(t *testing.T) {
	b := shippedFile(t, "recommended")
	b.Route()["timeout"] = "7s"
	for i, route := range b.routes() {
		if got := Object(route, "route")["timeout"]; got != "7s" {
			t.Errorf("route %d has the timeout %v", i, got)
		}
	}
}

func shippedFile(t *testing.T, name string) Bootstrap {
	t.Helper()
	b, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
