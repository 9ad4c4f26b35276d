package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// EngineState describes the answers of an endpoint's engine.
type EngineState struct {
	Endpoint Endpoint
	// Circuit is its circuit's state. Busy is true during the Retry-After of a 429.
	Circuit stock.CircuitState
	Busy    bool
	// Held is the number of slots held by failures, and Withheld the fictitious requests that count at the endpoint.
	Held, Withheld int
	// Answers are the numbers of answers by the first digit of their status.
	Answers [6]uint64
	// Service is the mean time from the grant to the end of successful requests; 0: unknown.
	Service time.Duration
	// Oldest is when the oldest request in flight was sent there; zero: none is in flight.
	Oldest time.Time
}

// Engines appends the states of the engines to some, by endpoint; none without Config.Circuits.
func (m *Machine) Engines(now time.Time, some []EngineState) []EngineState {
	for _, f := range m.inOrderOfEndpoints() {
		s := EngineState{
			Endpoint: f.endpoint, Busy: now.Before(f.asked.busy), Withheld: f.withheld, Answers: f.answers, Service: f.service,
		}
		circuit := f.circuit
		circuit.Advance(now) // the machine does so at its next event
		s.Circuit = circuit.State()
		for _, h := range f.held {
			if now.Before(h.until) {
				s.Held++
			}
		}
		if l := f.leases.Min(); l != nil {
			s.Oldest = m.sentAt(now, (*Lease)(l))
		}
		some = append(some, s)
	}
	return some
}
