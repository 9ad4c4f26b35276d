package modelsim

import (
	"net/http"
	"sync"
	"time"
)

// Outcome is how a request ended.
type Outcome uint8

// The outcomes.
const (
	InFlight  Outcome = iota
	Completed         // the whole answer was written, or a large one is being written
	Failed            // answered 204 or an error, or reset, by a quirk or because the request was bad
	Aborted           // the client left before its end
)

func (o Outcome) String() string {
	return [...]string{"in flight", "completed", "failed", "aborted"}[o]
}

// Record is the observation of one inference request.
type Record struct {
	Number    uint64 // from 1, in order of arrival
	Tag       string // value of the request header Config.TagHeader
	Method    string
	Path      string
	Proto     string      // "HTTP/1.1" or "HTTP/2.0"
	Host      string      // or :authority
	Header    http.Header // shared; must not be changed
	Body      []byte      // the first Config.RecordBodyBytes; shared, must not be changed
	BodyBytes int         // the length of the whole body

	Arrived    time.Time
	FirstToken time.Time // when the token was written, or an unstreamed answer's body; zero before
	Ended      time.Time // zero while in flight
	Outcome    Outcome

	// Prompt and Output are the engine's work for it, in tokens: the prompts, and the parts of all answers made before
	// the client left. Zero while in flight, and without any work.
	Prompt, Output int
}

// recordLog keeps the last requests.
type recordLog struct {
	mu   sync.Mutex
	ring []Record
	next uint64 // number of records ever added
}

// add stores the record and returns its index.
func (l *recordLog) add(r Record) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	place := int(l.next % uint64(cap(l.ring)))
	l.next++
	if len(l.ring) < cap(l.ring) {
		l.ring = append(l.ring, r)
	} else {
		l.ring[place] = r
	}
	return place
}

// change changes the record at the index, unless a newer record has replaced it.
func (l *recordLog) change(place int, number uint64, change func(*Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ring[place].Number == number {
		change(&l.ring[place])
	}
}

// all returns the kept records, the oldest first.
func (l *recordLog) all() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) < cap(l.ring) {
		return append([]Record(nil), l.ring...)
	}
	if len(l.ring) == 0 {
		return nil
	}
	oldest := l.next % uint64(len(l.ring))
	return append(append([]Record(nil), l.ring[oldest:]...), l.ring[:oldest]...)
}
