package datastore

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

func addressesOf(endpoints []scheduling.Endpoint) []string {
	var out []string
	for _, e := range endpoints {
		out = append(out, e.Address)
	}
	return out
}

func TestParseEndpoints(t *testing.T) {
	cases := []struct {
		name string
		in   []string
		want []string
	}{
		{"none", nil, nil},
		{"one", []string{"127.0.0.1:8000"}, []string{"127.0.0.1:8000"}},
		{"a list", []string{"127.0.0.1:8000, 127.0.0.1:8001"}, []string{"127.0.0.1:8000", "127.0.0.1:8001"}},
		{"repeated", []string{"127.0.0.1:8000", "127.0.0.2:8000,127.0.0.3:8000"}, []string{"127.0.0.1:8000", "127.0.0.2:8000", "127.0.0.3:8000"}},
		{"IPv6, canonical", []string{"[0::1]:8000"}, []string{"[::1]:8000"}},
	}
	for _, c := range cases {
		got, err := ParseEndpoints(c.in)
		if err != nil || !slices.Equal(addressesOf(got), c.want) {
			t.Errorf("%s: %q, %v", c.name, addressesOf(got), err)
		}
		for _, e := range got {
			if !e.Ready {
				t.Errorf("%s: %s is not ready", c.name, e.Address)
			}
		}
	}
}

// Each kind of bad value has its own message, which quotes the value.
func TestParseEndpointsErrors(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1":                     `"127.0.0.1" has no port`,
		"::1":                           `"::1" has no port`,
		"[::1]":                         `"[::1]" has no port`,
		"127.0.0.1:0":                   `"127.0.0.1:0" has a bad port "0"`,
		"127.0.0.1:65536":               `has a bad port "65536"`,
		"[::1]:http":                    `has a bad port "http"`,
		"127.0.0.1:":                    `has a bad port ""`,
		"localhost:8000":                `"localhost:8000" is a hostname`,
		"vllm":                          `"vllm" is a hostname`,
		"http://10.0.0.1:80":            `"http://10.0.0.1:80" is not an address`,
		"[fe80::1%eth0]:80":             `is not an address`,
		"0.0.0.0:80":                    `"0.0.0.0:80" is not a destination`,
		"[::]:80":                       `is not a destination`,
		"":                              `"" is empty`,
		"127.0.0.1:80,":                 `"" is empty`,
		"127.0.0.1:80,127.0.0.1:80":     `"127.0.0.1:80" is listed twice`,
		"[::1]:80,[0::1]:80":            `"[::1]:80" is listed twice`,
		"a:1,127.0.0.1:80,b:2":          `"a:1" is a hostname`,
		"127.0.0.1:80,127.0.0.1:80,b:2": `"b:2" is a hostname`,
	} {
		endpoints, err := ParseEndpoints([]string{in})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %s", in, err, want)
		}
		if endpoints != nil {
			t.Errorf("%q: %v beside an error", in, endpoints)
		}
	}
}
