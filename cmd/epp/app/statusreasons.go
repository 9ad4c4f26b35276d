package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/dispatch"
)

// handshakesFailLately is the time for which a failed TLS handshake counts against the health.
const handshakesFailLately = time.Minute

// reasonNames bounds the endpoints named in one reason.
const reasonNames = 5

// reasons returns the reasons why this epp is unhealthy. A follower is healthy: it lacks only the leadership.
func (a *App) reasons(d *status.Document, r *recent, now time.Time) (reasons []status.Reason) {
	add := func(is bool, id, text string, args ...any) {
		if is {
			reasons = append(reasons, status.Reason{ID: id, Text: fmt.Sprintf(text, args...)})
		}
	}
	p := &d.Pool
	add(p.Draining, "draining", "this replica drains and takes no more requests")
	others := a.readiness.have(listening | synced | open)
	add(!others && !p.Draining, "not-ready", "this replica is not ready: %s", p.Lacks)
	add(p.ReadyEngines == 0, "no-engine", "no engine is ready, of %d", p.Engines)
	var down, open []string
	for i := range d.Engines {
		switch e := &d.Engines[i]; {
		case !e.Ready:
			down = append(down, e.Address)
		case e.State() != "ready":
			open = append(open, e.Address+" ("+e.Circuit+")")
		}
	}
	add(p.ReadyEngines > 0 && len(down) > 0, "engines-down", "%d of %d engines are not ready: %s", len(down), p.Engines, few(down))
	add(len(open) > 0, "circuits-open", "%d of %d engines fail, or Envoy does not reach them, and get no requests but single trials: %s",
		len(open), p.Engines, few(open))
	add(p.QueueCapacity > 0 && p.Waiting >= p.QueueCapacity, "queue-full", "the queue is full: %d of %d wait", p.Waiting, p.QueueCapacity)
	rejecting := r.rejecting()
	add(rejecting != "", "rejecting", "%s", rejecting)
	if problem := a.configuration.problem(); problem != "" {
		add(true, "configuration-invalid", "the newest configuration is invalid and not in use: %s", problem)
	}
	if err := a.files.Err(); err != nil {
		add(true, "files-not-followed", "files are read at SIGHUP only: %v", err)
	}
	if a.options.kubernetes() {
		waiting := a.pool.cluster.Waiting()
		add(len(waiting) > 0, "kubernetes-waits", "waits for %s", strings.Join(waiting, ", "))
	}
	if a.handshakes != nil {
		add(a.handshakes.failedLately(now, handshakesFailLately), "tls-handshakes", "clients fail to connect by TLS, so an Envoy may pass this replica by: %s",
			strings.ReplaceAll(a.handshakes.summary(now), "\t", ": "))
	}
	past := a.pool.passedBy(now)
	add(len(past) > 0, "passed-by", "%d of %d engines have requests, and Weir has no stream: a proxy passes Weir by, or other clients use %s",
		len(past), p.Engines, few(past))
	panics := a.pool.controller.State().Panics
	add(panics > 0, "panics", "%d decisions have panicked since the start: please report the log", panics)
	return reasons
}

// notes returns facts that an operator may look for, and that say nothing against the health.
func (a *App) notes(r *recent) (notes []status.Note) {
	if r.many(r.n-r.noEndpoint) && !r.ofMostFlows() {
		notes = append(notes, status.Note{
			ID: "flows-rejected", Text: fmt.Sprintf("%.0f%% of the requests of the last %v were rejected, all of %d of %s", r.share(r.n-r.noEndpoint), r.window,
				len(r.flows), counted(r.active, "flow")), Flows: r.flows[:min(len(r.flows), reasonNames)],
		})
	}
	if len(r.refusing) > 0 {
		notes = append(notes, status.Note{
			ID: "engines-refuse", Text: fmt.Sprintf("all answers of the last %v were 4xx at %s", r.window, few(r.refusing)),
		})
	}
	if text := reservedNote(a.pool.controller.Tiers()); text != "" {
		notes = append(notes, status.Note{ID: "reserved", Text: text})
	}
	if err := a.pool.records.Failure(); err != nil {
		notes = append(notes, status.Note{ID: "records-lost", Text: fmt.Sprintf("decisions.file cannot be written: %v", err)})
	}
	return notes
}

// reservedNote names the tiers that wait since the free stock is reserved for higher ones, and these; "" without any.
func reservedNote(tiers []dispatch.TierState) string {
	var waiting, reserved []string
	for i := range tiers {
		t := &tiers[i]
		if t.Withheld && t.Queued > 0 {
			waiting = append(waiting, fmt.Sprintf("%d of %s", t.Queued, t.Name))
		}
	}
	for i := range tiers {
		if t := &tiers[i]; t.Reserved > t.InFlight && len(waiting) > 0 {
			reserved = append(reserved, fmt.Sprintf("%s (%d of %d unused)", t.Name, t.Reserved-t.InFlight, t.Reserved))
		}
	}
	if len(reserved) == 0 {
		return ""
	}
	return fmt.Sprintf("requests wait, %s, since the free stock is reserved for %s", few(waiting), few(reserved))
}

// few returns the first of some names.
func few(names []string) string {
	text := strings.Join(names[:min(len(names), reasonNames)], ", ")
	if more := len(names) - reasonNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
