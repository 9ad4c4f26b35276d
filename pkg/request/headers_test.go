package request

import (
	"slices"
	"testing"
	"unsafe"
)

// Weir's own and trusted headers never reach the model server, nor does a client's destination.
func TestControlHeaders(t *testing.T) {
	s := sent{cfg: DefaultConfig(), headers: chat("x-gateway-model-name", "m", "x-gateway-destination-endpoint", "evil", "x-cost", "1",
		"x-weir-queue-state", "1", "x-weir-new", "1", "x-weir-new", "2", "x-weird", "1", "x-weir-", "1", "x-llm-d-slo-ttft-ms", "5")}
	s.cfg.TrustedHeaders.Cost = "x-cost"
	q := s.must(t)
	want := []string{"x-cost", "x-gateway-destination-endpoint", "x-gateway-model-name", "x-llm-d-slo-ttft-ms", "x-weir-queue-state"}
	if got := slices.Sorted(slices.Values(q.rules.AppendNames(nil, q.Control))); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(q.Own, []string{"x-weir-new", "x-weir-new"}) || !q.QueueState {
		t.Errorf("own %q, queue state %v", q.Own, q.QueueState)
	}
	if got := q.rules.AppendNames(nil, q.Control&DestinationSlot); !slices.Equal(got, []string{DestinationHeader}) {
		t.Errorf("%q", got)
	}
}

// A header that Weir does not read costs nothing; one that it reads costs a copy of its value.
func TestHeadersThatAreNotRead(t *testing.T) {
	cfg := DefaultConfig()
	r := NewRules(&cfg)
	value := []byte("Bearer 0123456789abcdef0123456789abcdef")
	var h Headers
	if n := testing.AllocsPerRun(100, func() {
		h = Headers{}
		h.Add(r, "authorization", value)
		h.AddString(r, ":path", "/v1/chat/completions")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A request that is kept keeps no message: the bytes of names and values may be overwritten once the headers are read.
func TestNothingKeepsTheMessage(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowKey = []string{"header:x-tenant"}
	rules := NewRules(&cfg)
	var h Headers
	message := []byte("x-weir-mine" + "x-tenant" + "anna")
	part := func(from, to int) string { return unsafe.String(&message[from], to-from) }
	h.Add(rules, part(0, 11), nil)
	h.Add(rules, part(11, 19), message[19:])
	q := new(Request)
	if _, err := q.ReadHeaders(rules, &h, &Input{End: true, Context: told{}, Models: listed{}}); err != nil {
		t.Fatal(err)
	}
	clear(message)
	if !slices.Equal(q.Own, []string{"x-weir-mine"}) || q.Tenant != "anna" {
		t.Errorf("own %q, tenant %q", q.Own, q.Tenant)
	}
}
