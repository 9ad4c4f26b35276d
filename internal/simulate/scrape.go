package simulate

import (
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// scrapeInterval is epp's.
const scrapeInterval = time.Second

// scrapes are the times at which the engines' metrics are read: each engine's once in an interval, one after the other.
type scrapes struct {
	engines int // 0: none are read
	done    int
}

func newScrapes(engines int, follow bool) scrapes {
	if !follow {
		return scrapes{}
	}
	return scrapes{engines: engines}
}

// before returns the next scrape, if it is due before a time. While no engine works, nothing changes, and scrapes are
// skipped.
func (s *scrapes) before(at time.Time, works bool) (engine int, when time.Time, due bool) {
	if s.engines == 0 {
		return 0, time.Time{}, false
	}
	if !works {
		s.done = max(s.done, int(at.Sub(epoch)/(scrapeInterval/time.Duration(s.engines))))
		return 0, time.Time{}, false
	}
	when = epoch.Add(scrapeInterval / time.Duration(s.engines) * time.Duration(s.done+1))
	if !when.Before(at) {
		return 0, time.Time{}, false
	}
	s.done++
	return s.done % s.engines, when, true
}

// scrape tells the machine an engine's published metrics.
func (s *simulation) scrape(e int) {
	s.note(e, s.engines[e].Advance(s.now))
	load := s.engines[e].Published()
	s.setSignals(dispatch.Endpoint(e), scheduling.Signals{
		Known: true, Running: int32(load.Running), Waiting: int32(load.Waiting),
		Preemptions: int64(load.Preemptions), Produced: int64(load.GeneratedTokens),
	})
	s.carryOut(nil)
}
