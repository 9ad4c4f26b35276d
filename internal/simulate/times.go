package simulate

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// services are the times of requests at engines in the recording. A request without a known time takes a similar one's:
// of the same flow, model and size, or else of the same model and size, of the same model, or of any.
type services struct {
	known  map[similarity][]time.Duration
	lot    *rand.Rand
	part   float64 // part of the requests with a known time that take another one's
	owed   float64
	asked  int
	others int // number of requests that took another one's time
}

// similarity has the common properties of similar requests.
type similarity struct {
	level       similarityLevel
	flow, model string
	size        int // bits of the cost
}

type similarityLevel uint8

const (
	anyRequest similarityLevel = iota
	sameModel
	sameSize
	sameFlow
)

// defaultService is a request's time if the recording has none. With fewer than leastSimilar similar requests the next
// level is used. No request takes less than leastService.
const (
	defaultService = time.Second
	leastSimilar   = 5
	leastService   = time.Microsecond
)

func servicesOf(h *recording.History, seed uint64, part float64) *services {
	s := &services{known: map[similarity][]time.Duration{}, lot: rand.New(rand.NewPCG(seed, 4)), part: part}
	for _, v := range h.Visits {
		if took, ok := serviceOf(v); ok {
			for _, of := range similaritiesOf(v) {
				s.known[of] = append(s.known[of], took)
			}
		}
	}
	return s
}

// similaritiesOf returns the similarities of a request, the closest first.
func similaritiesOf(v *recording.Visit) [4]similarity {
	model := ""
	if v.Placed != nil {
		model = v.Placed.Model
	}
	size := bits.Len64(uint64(max(1, v.Arrival.Cost)))
	return [4]similarity{
		{sameFlow, v.Arrival.Flow, model, size}, {sameSize, "", model, size}, {sameModel, "", model, 0}, {anyRequest, "", "", 0},
	}
}

// serviceOf returns a request's time at its engine, if the recording has all of it.
func serviceOf(v *recording.Visit) (time.Duration, bool) {
	known := !v.Dispatched.IsZero() && !v.Ended.IsZero() && v.Outcome == dispatch.OutcomeDispatched && !v.Running
	return max(leastService, v.Ended.Sub(v.Dispatched)), known
}

// of returns a request's time at its engine.
func (s *services) of(v *recording.Visit) time.Duration {
	s.asked++
	if v.Running && !v.Ended.IsZero() { // the remaining time
		return max(leastService, v.Ended.Sub(v.Dispatched))
	}
	took, known := serviceOf(v)
	if known {
		if s.owed += s.part; s.owed < 1 {
			return took
		}
		s.owed--
	}
	s.others++
	of := similaritiesOf(v)
	for i, like := range of {
		if all := s.known[like]; len(all) >= leastSimilar || i == len(of)-1 && len(all) > 0 {
			return all[s.lot.IntN(len(all))]
		}
	}
	return defaultService
}
