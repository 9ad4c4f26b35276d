package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/status"
)

// handshakesFailLately is the time for which a failed TLS handshake counts against the health.
const handshakesFailLately = time.Minute

// reasonNames bounds the endpoints named in one reason.
const reasonNames = 5

// reasons returns the reasons why this epp is unhealthy. A follower is healthy: it lacks only the leadership.
func (a *App) reasons(d *status.Document, now time.Time) (reasons []status.Reason) {
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
	if r := a.pool.endings.since(a.pool.outcomes(now)); r.tooOften() {
		add(true, "rejecting", "%.0f%% of the requests of the last %v were rejected, most of them with %s (%.0f%%)",
			r.share(r.n), max(time.Second, r.window.Round(time.Second)), r.main, r.share(r.most))
	}
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

// few returns the first of some names.
func few(names []string) string {
	text := strings.Join(names[:min(len(names), reasonNames)], ", ")
	if more := len(names) - reasonNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
