package config

import (
	"reflect"
	"testing"
)

// Load returns for any text, and a document that decodes without a problem reads back from its own YAML as an equal
// document.
func FuzzDecode(f *testing.F) {
	for _, name := range Profiles() {
		f.Add([]byte("profile: " + name))
	}
	f.Add([]byte("fair_request_queue: { total_capacity: 2000, queue_ttl: 1h2m3s }\nflows: { weights: { a: 0.25, \"\": 3 } }"))
	f.Add([]byte("replaceTiers: true\ntiers: [ { name: gold }, { name: default, minPriority: null, queueTimeout: 5m } ]\nmodels: [ &m {}, *m ]"))
	f.Add([]byte("requestQueueController: { percentageDeviationForBounds: 0.000001, slotsPerBackend: 1 }\nresponses: { status: { x: 1 } }"))
	f.Add([]byte("fairRequestQueue: { totalCapacity: 99999999999999999999, flowCapacity: -99999999999999999999 }"))
	f.Add([]byte("a: &a [*a, *a]\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Load(source(string(text)))
		d, err := Decode(text)
		if err != nil || d.Profile != profileUsed(d) {
			return
		}
		written, err := d.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(written)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, written)
		}
		if !reflect.DeepEqual(back, d) {
			t.Fatalf("got  %+v\nwant %+v\nby\n%s", back, d, written)
		}
	})
}

// profileUsed returns the profile under a document.
func profileUsed(d Document) string {
	if _, err := Profile(d.Profile); err != nil {
		return ProfileWFQ
	}
	return d.Profile
}
