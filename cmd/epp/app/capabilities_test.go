package app

import (
	"testing"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// An engine's own statement counts if the source of its endpoint states nothing, as long as the endpoint is ready.
func TestCapabilitiesThatEnginesState(t *testing.T) {
	const image, audio = scheduling.NeedImage, scheduling.NeedAudio
	stored := scheduling.NewSnapshot(1, []scheduling.Endpoint{
		{ID: 1, Address: "10.0.0.1:80", Ready: true, Models: []string{"a"}},
		{ID: 2, Address: "10.0.0.2:80", Ready: true, Lacks: audio, LacksStated: true},
		{ID: 3, Address: "10.0.0.3:80", Ready: true, LacksStated: true},
	})
	var c capabilities
	lacks := func(s *scheduling.Snapshot, want ...scheduling.Needs) {
		t.Helper()
		for i := range want {
			if got := s.At(i).Lacks; got != want[i] {
				t.Errorf("endpoint %d lacks %v, want %v", s.At(i).ID, got, want[i])
			}
		}
	}
	if c.of(stored) != stored || c.state(1, 0) {
		t.Error("without statements the store's snapshot is another one")
	}
	for id := range scheduling.EndpointID(3) {
		if !c.state(id+1, image) || c.state(id+1, image) {
			t.Errorf("the statement of %d is not new once", id+1)
		}
	}
	first := c.of(stored)
	lacks(first, image, audio, 0)
	// A model that leaves is not unknown, in whatever order the snapshots came.
	stored = stored.Next(2, []scheduling.Endpoint{{ID: 2, Address: "10.0.0.2:80", Ready: true, Models: []string{"b"}}})
	if second := c.of(stored); !second.HasListed("a") {
		t.Error("it is not known that a model was listed")
	}
	c.forget(map[scheduling.EndpointID]bool{1: false, 2: true, 3: true})
	c.state(2, 0)
	c.state(3, 0)
	if c.of(stored) != stored {
		t.Error("statements that are gone still count")
	}
}

func TestNeedsInTheWordsOfTheScheduling(t *testing.T) {
	for name, needs := range map[string]request.Needs{
		"": {}, "image": {Needs: body.Needs{Image: true}}, "audio": {Needs: body.Needs{Audio: true}}, "video": {Needs: body.Needs{Video: true}},
		"embeddings": {Embeddings: true}, "structured_output": {Needs: body.Needs{Structured: true}},
		"image,structured_output": {Needs: body.Needs{Image: true, Structured: true}},
	} {
		if got := needsOf(&needs); got.String() != name {
			t.Errorf("%+v is %v", needs, got)
		}
	}
}
