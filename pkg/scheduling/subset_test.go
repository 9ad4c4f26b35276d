package scheduling

import (
	"slices"
	"testing"
)

func TestSubsetCanonical(t *testing.T) {
	cases := []struct {
		name string
		in   []string
		want []string
	}{
		{"none", nil, nil},
		{"blanks", []string{"", "  "}, nil},
		{"sorted, each once", []string{"b:2", "a:1", " b:2 ", "a:1"}, []string{"a:1", "b:2"}},
		{"forms of one address", []string{"[0::1]:80", "[::1]:80", "[::0001]:080"}, []string{"[::1]:80"}},
		{"a host covers its ports", []string{"1.2.3.4:80", "1.2.3.4", "1.2.3.4:81", "1.2.3.5:80"}, []string{"1.2.3.4", "1.2.3.5:80"}},
		{"ports sort as numbers", []string{"a:1000", "a:200"}, []string{"a:200", "a:1000"}},
	}
	for _, c := range cases {
		var got []string
		for _, entry := range (Subset{Set: true, Entries: c.in}).canonical() {
			got = append(got, entry.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSubsetCovers(t *testing.T) {
	entries := Subset{Entries: []string{"1.2.3.4", "1.2.3.5:80", "[::1]:80"}}.canonical()
	for address, want := range map[string]bool{
		"1.2.3.4:1": true, "1.2.3.4:65535": true, "1.2.3.5:80": true, "1.2.3.5:81": false, "[::1]:80": true,
		"[::1]:81": false, "1.2.3.6:80": false,
	} {
		if got := covers(entries, ParseHostPort(address)); got != want {
			t.Errorf("covers(%s) = %v, want %v", address, got, want)
		}
	}
}
