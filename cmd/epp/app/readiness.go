package app

import (
	"strings"
	"sync"

	"google.golang.org/grpc/health"
)

// condition is a condition for requests to come here.
type condition uint8

const (
	listening condition = 1 << iota // everything listens
	synced                          // the sources of endpoints have been read
	leading                         // no other replica is the leader
	open                            // the process is not draining
)

// conditionNames names unmet conditions, for people.
var conditionNames = map[condition]string{
	listening: "starting", synced: "not synced", leading: "not the leader", open: "draining",
}

// readiness has the conditions, and sets the health services from them. It is safe for concurrent use.
type readiness struct {
	health *health.Server

	mu    sync.Mutex
	holds condition // the conditions that hold
}

// newReadiness returns a readiness that waits for the listeners. Wiring code unsets the other conditions of its parts
// before the start.
func newReadiness(health *health.Server) *readiness {
	return &readiness{health: health, holds: synced | leading | open}
}

// set notes whether a condition holds.
func (r *readiness) set(c condition, holds bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds &^= c; holds {
		r.holds |= c
	}
	setServing(r.health, whenSynced, r.have(listening|synced|open))
	setServing(r.health, whenReady, r.have(listening|synced|open|leading))
}

func (r *readiness) have(all condition) bool { return r.holds&all == all }

// ready reports whether requests should come here.
func (r *readiness) ready() bool { return r.lacks() == "" }

// lacks names the unmet conditions; "" if there are none.
func (r *readiness) lacks() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lacks []string
	for c := listening; c <= open; c <<= 1 {
		if !r.have(c) {
			lacks = append(lacks, conditionNames[c])
		}
	}
	return strings.Join(lacks, ", ")
}
