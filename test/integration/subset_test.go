package integration

import (
	"encoding/base64"
	"net"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// metadataFromHeader makes Envoy set dynamic metadata of any shape before it calls Weir, from a request header written
// by inMetadata. Other filters (for JWTs, or a gateway's) set metadata in the same way.
func metadataFromHeader(b envoyrun.Bootstrap, header, namespace, key string) {
	manager := b.ConnectionManager()
	filter := map[string]any{
		"name": "envoy.filters.http.header_to_metadata." + header,
		"typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config",
			"request_rules": []any{map[string]any{
				"header": header,
				"remove": true,
				"on_header_present": map[string]any{
					"metadata_namespace": namespace, "key": key, "type": "PROTOBUF_VALUE", "encode": "BASE64",
				},
			}},
		},
	}
	manager["http_filters"] = append([]any{filter}, envoyrun.List(manager, "http_filters")...)
}

// inMetadata returns the value of a header for metadataFromHeader.
func inMetadata(t *testing.T, value any) string {
	t.Helper()
	v, err := structpb.NewValue(value)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// The subset hint of the endpoint-picker protocol, in all its forms, confines the pick to its members, and never opens
// the pool. A hint without a member is rejected at once.
func TestSubset(t *testing.T) {
	t.Parallel()
	at := func(address string) modelsim.Config {
		cfg := recorded(8)
		cfg.Address = address + ":0"
		return cfg
	}
	s := start(t, setup{
		models: []modelsim.Config{at("127.0.0.1"), at("127.0.0.2"), at("[::1]")},
		edit: func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-subset", "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset")
			return nil
		},
	})
	a, b, c := s.models[0].Address(), s.models[1].Address(), s.models[2].Address()
	_, port, err := net.SplitHostPort(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		hint any
		want string // the permitted model servers; none: no-endpoint
	}{
		{"one", a, "a"},
		{"another", b, "b"},
		{"two", a + "," + b, "ab"},
		{"with blanks", " " + a + " , " + c + " ", "ac"},
		{"a list", []any{a, b}, "ab"},
		{"a list of lists", []any{a + "," + b, c}, "abc"},
		{"an address without a port", "127.0.0.2", "b"},
		{"IPv6", c, "c"},
		{"IPv6 without a port", "::1", "c"},
		{"IPv6 in brackets, without a port", "[::1]", "c"},
		{"IPv6 written at length", "[0:0:0:0:0:0:0:1]:" + port, "c"},
		{"IPv4 in IPv6", "::ffff:127.0.0.1", "a"},
		{"a member and a stranger", "10.1.2.3:80," + b, "b"},
		{"a stranger", "10.1.2.3:80", ""},
		{"a member's address with another port", "127.0.0.1:1", ""},
		{"empty", "", ""},
		{"nothing but commas", " , ,", ""},
		{"an empty list", []any{}, ""},
		{"a form that nobody speaks", map[string]any{"endpoint": a}, ""},
		{"a number", 8000, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before [3]int
			for i, m := range s.models {
				before[i] = len(m.Records())
			}
			hinted := ask{header: []string{"x-test-subset", inMetadata(t, test.hint)}}
			if test.want == "" {
				wantRejection(t, s.send(hinted), rejection{status: 503, reason: "no-endpoint"})
				return
			}
			// Twice as many requests as servers: an idle pool is served in turn, so each permitted server is picked.
			for range 6 {
				wantServed(t, "a hinted request", s.send(hinted))
			}
			got := ""
			for i, m := range s.models {
				if len(m.Records()) > before[i] {
					got += string("abc"[i])
				}
			}
			if got != test.want {
				t.Errorf("served by %q, want %q", got, test.want)
			}
		})
	}
	wantServed(t, "without a hint", s.send(ask{}))
	// A client's header of the same name has no effect.
	wantServed(t, "a client's hint", s.send(ask{header: []string{"x-gateway-destination-endpoint-subset", "10.1.2.3:80"}}))
	for _, m := range s.models {
		for _, r := range m.Records() {
			for name := range r.Header {
				if strings.EqualFold(name, "x-gateway-destination-endpoint-subset") {
					t.Error("the hint goes on to the model server")
				}
			}
		}
	}
	s.epp.settled()
}

// A request that waits for its subset does not block others, and it waits for a known member that is not ready.
func TestSubsetThatIsBusy(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{
		models: []modelsim.Config{v.on(recorded(8)), recorded(8)},
		config: single,
		edit: func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-subset", "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset")
			return nil
		},
	})
	confined := ask{header: []string{"x-test-subset", inMetadata(t, s.models[0].Address())}}
	s.begin(confined)
	s.epp.waitFor(1, "weir_stock_level")
	waits := s.begin(confined) // the pool has room, its subset has none
	s.epp.waitFor(1, "weir_queue_length")
	for range 3 {
		wantServed(t, "who may use the other one", s.send(ask{header: []string{"x-test-subset", inMetadata(t, s.models[1].Address())}}))
	}
	v.open()
	wantServed(t, "the confined one", waits.wait())
	s.epp.settled()
}
