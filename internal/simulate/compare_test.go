package simulate

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// compare returns the prediction of a recording under a configuration.
func compare(t *testing.T, h *recording.History, clients Clients, d config.Document) (*Comparison, map[string]FlowChange) {
	t.Helper()
	c, err := Compare(&CompareOptions{
		Configs: []RecordedOptions{{Name: "new", Config: &d}}, Clients: clients, Seed: 1, Flows: 20,
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	flows := map[string]FlowChange{}
	for _, f := range c.Configurations[0].Flows {
		flows[f.Flow] = f
	}
	return c, flows
}

// later returns a recording with a clock of the present, like epp's.
func later(h *recording.History) *recording.History {
	const by = 55 * 365 * 24 * time.Hour
	moved := *h
	moved.From, moved.To = h.From.Add(by), h.To.Add(by)
	move := func(at *time.Time) {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
	moved.Visits = nil
	for _, v := range h.Visits {
		v := *v
		for _, at := range []*time.Time{&v.At, &v.Arrival.Deadline, &v.Dispatched, &v.FirstByte, &v.Ended} {
			move(at)
		}
		moved.Visits = append(moved.Visits, &v)
	}
	moved.Changes, moved.Reports = slices.Clone(h.Changes), slices.Clone(h.Reports)
	for i := range moved.Changes {
		move(&moved.Changes[i].At)
	}
	for i := range moved.Reports {
		move(&moved.Reports[i].At)
	}
	return &moved
}

// A weight is predicted from a recording without it, and compared with a run with it: shares within 2 points and median
// waits within 5 %, whenever the recording was made. Clients in closed loops are recognised, and send more when they
// are served faster.
func TestAWeightIsPredicted(t *testing.T) {
	_, h := recordingOf(t, "loops", "small", false)
	_, truth := recordingOf(t, "loops", "three", false)
	_, want := compare(t, truth, ClientsAuto, readConfig(t, "three"))
	for name, h := range map[string]*recording.History{"then": h, "now": later(h)} {
		c, got := compare(t, h, ClientsAuto, readConfig(t, "three"))
		if c.Error == nil || c.Error.SharePoints > 1 || c.Error.WaitPercent > 5 {
			t.Errorf("%s: an error of %+v", name, c.Error)
		}
		for _, flow := range []string{"a", "b"} {
			f, is := got[flow], want[flow].Before
			if f.Clients != "closed" || math.Abs(f.After.SharePercent-is.SharePercent) > 2 || math.Abs(f.After.WaitP50-is.WaitP50) > 0.05*is.WaitP50 {
				t.Errorf("%s: %+v\nwas to be %+v", name, f, is)
			}
		}
		if a := got["a"]; a.After.SharePercent < a.Before.SharePercent+20 || a.After.Requests < a.Before.Requests*5/4 {
			t.Errorf("%s: the weight moves %+v to %+v", name, a.Before, a.After)
		}
		all := c.Configurations[0].All
		if all.Before.Requests != len(h.Visits) || math.Abs(all.After.SharePercent-100) > 0.001 || all.Before.Granted != h.Grants {
			t.Errorf("all: %+v, of %d grants", all, h.Grants)
		}
	}
	_, open := compare(t, h, ClientsOpen, readConfig(t, "three"))
	if f := open["a"]; f.Clients != "open" || f.After.Requests != f.Before.Requests {
		t.Errorf("as open arrivals: %+v", f)
	}
}

// Random arrivals are no closed loop, whether engines keep up or not. Neither are arrivals rejected by a full queue.
func TestOpenArrivalsAreNoLoop(t *testing.T) {
	for _, workload := range []string{"weights", "groups", "tiers", "crowd"} {
		_, h := recordingOf(t, workload, "small", false)
		for flow, is := range clientsOf(h, ClientsAuto) {
			if is != clientsOpen {
				t.Errorf("%s: the clients of %s are taken for %s", workload, flow, is)
			}
		}
	}
	var visits []*recording.Visit
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	for i := range 200 { // every other one finds no place, the others wait for as long as eight take
		v := &recording.Visit{At: at(10 * i), Arrival: dispatch.Arrival{Flow: "f"}, Ended: at(10 * i), Outcome: dispatch.OutcomeFlowFull}
		if i%2 == 0 {
			v.Outcome, v.Ended, v.Dispatched = dispatch.OutcomeDispatched, at(10*i+160), at(10*i+140)
		}
		visits = append(visits, v)
	}
	if h := (&recording.History{From: epoch, To: at(3000), Visits: visits}); clientsOf(h, ClientsAuto)["f"] != clientsOpen || clientsOf(h, ClientsClosed)["f"] != clientsClosed {
		t.Error("rejected arrivals are taken for a loop, or cannot be")
	}
}

// loopOf is a history of clients that send requests of 100 ms each, one after the other, with 2 ms between, in the times
// given.
func loopOf(clients int, phases ...[2]int) *recording.History {
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	h := &recording.History{From: epoch}
	for _, p := range phases {
		for ms := p[0]; ms < p[1]; ms += 102 {
			for c := range clients {
				h.Visits = append(h.Visits, &recording.Visit{
					At: at(ms + 25*c), Arrival: dispatch.Arrival{Flow: "f"}, Dispatched: at(ms + 25*c), Ended: at(ms + 25*c + 100),
					Outcome: dispatch.OutcomeDispatched,
				})
			}
		}
		h.To = at(p[1])
	}
	return h
}

// Each client of a loop is found once, with its pauses. After a longer pause it is a new client. It goes on until the
// recording's end unless it stopped before.
func TestClientsOfALoop(t *testing.T) {
	h := loopOf(4, [2]int{0, 3060}, [2]int{20_000, 23_060})
	last := h.Visits[len(h.Visits)-3:] // they run on when the recording ends
	ends := []time.Time{last[0].Ended, last[1].Ended, last[2].Ended}
	for _, v := range last {
		v.Ended = time.Time{}
	}
	begins, follows := loopsOf(h, ClientsAuto)
	if len(begins) != 8 || len(follows) != len(h.Visits)-8 {
		t.Fatalf("%d of %d begin, and %d follow", len(begins), len(h.Visits), len(follows))
	}
	for v, c := range begins {
		if c.crowd.pauses[0] != 2*time.Millisecond || len(c.crowd.requests) != len(h.Visits)/2 {
			t.Errorf("%v, of %d requests", c.crowd.pauses[0], len(c.crowd.requests))
		}
		if first := v.At.Before(epoch.Add(time.Second)); first && c.until.Sub(epoch) != 3033*time.Millisecond || !first && c.until != h.To {
			t.Errorf("one that begins at %v goes on until %v", v.At.Sub(epoch), c.until.Sub(epoch))
		}
	}
	for i, v := range last { // they end, and no others come
		v.Ended = ends[i]
	}
	h.To = h.To.Add(time.Second)
	begins, _ = loopsOf(h, ClientsAuto)
	for v, c := range begins {
		if v.At.After(epoch.Add(time.Second)) && c.until.Sub(epoch) != 23_033*time.Millisecond {
			t.Errorf("one that stopped goes on until %v", c.until.Sub(epoch))
		}
	}
}

// The figures cover the time of the recording. They include earlier waits of its requests, and exclude requests already
// running at its start.
func TestFiguresAreOfTheTimeOfTheRecording(t *testing.T) {
	v, ran := &recording.Visit{Waited: 2 * time.Second}, &recording.Visit{Running: true}
	h := &recording.History{From: epoch, To: epoch.Add(10 * time.Second), Visits: []*recording.Visit{v, ran}}
	w := newWindow(h)
	w.granted(v, time.Second, epoch.Add(4*time.Second))
	w.granted(ran, 0, epoch)
	w.granted(v, 0, epoch.Add(11*time.Second))
	w.arrived(v, epoch.Add(11*time.Second))
	w.ended(v, dispatch.OutcomeTTLExpired, epoch.Add(11*time.Second))
	w.ended(v, dispatch.OutcomeTTLExpired, epoch.Add(9*time.Second))
	w.ended(v, dispatch.OutcomeClientCancelled, epoch.Add(9*time.Second))
	f := w.flows[""].figures(w.work())
	if f.Granted != 1 || f.Requests != 0 || f.Rejected != 1 || f.Left != 1 || f.SharePercent != 100 || math.Abs(f.WaitP50-5) > 0.05 {
		t.Errorf("%+v", f)
	}
}

// The configuration may change within a recording. The error is that of all its configurations, and none of them counts
// as the recorded one.
func TestAConfigurationThatChangedInTheRecording(t *testing.T) {
	_, h := recordingOf(t, "loops", "three", false)
	small := readConfig(t, "small")
	h.Configs = []recording.ConfigChange{{At: h.From, Config: h.Config, Scheduling: h.Scheduling}}
	h.Config = small.FlowcontrolConfig().Config
	for _, name := range []string{"small", "three"} {
		c, _ := compare(t, h, ClientsAuto, readConfig(t, name))
		if c.Configurations[0].AsRecorded || c.Error == nil || c.Error.SharePoints > 1 {
			t.Errorf("%s: as recorded: %t, with an error of %+v", name, c.Configurations[0].AsRecorded, c.Error)
		}
	}
}

// Weir sees the end of an answer some milliseconds after its client, which may already have sent the next request: that
// is one client.
func TestTheNextRequestMayComeBeforeTheEnd(t *testing.T) {
	h := loopOf(4, [2]int{0, 3060})
	for _, v := range h.Visits {
		v.Ended = v.Ended.Add(7 * time.Millisecond)
	}
	begins, _ := loopsOf(h, ClientsAuto)
	if len(begins) != 4 {
		t.Errorf("%d clients, want 4", len(begins))
	}
	for _, c := range begins {
		if slices.Max(c.crowd.pauses) != 0 {
			t.Errorf("pauses of %v", c.crowd.pauses)
		}
	}
}

// Clients take the recorded pauses and requests in turn, and again from the first. After a rejection they wait for a second.
func TestClientsTakeTurns(t *testing.T) {
	visits := []*recording.Visit{{}, {}}
	c := &client{crowd: &crowd{requests: visits, pauses: []time.Duration{1, 2, 3}}, until: epoch.Add(time.Hour)}
	for i := range 7 {
		of, at, ok := c.follow(epoch, false)
		if !ok || of != visits[i%2] || at.Sub(epoch) != time.Duration(i%3+1) {
			t.Errorf("request %d: %v after %v", i, ok, at.Sub(epoch))
		}
	}
	if _, at, _ := c.follow(epoch, true); at.Sub(epoch) != afterRejection {
		t.Errorf("after a rejection: %v", at.Sub(epoch))
	}
	if _, _, ok := c.follow(c.until, false); ok {
		t.Error("it goes on when it has stopped")
	}
	if _, _, ok := (*client)(nil).follow(epoch, false); ok {
		t.Error("a request that arrived by itself is followed by another")
	}
}

// A request that did not run takes the time of one of its flow, model and size, or else that of another request.
func TestTimesOfSimilarRequests(t *testing.T) {
	h := &recording.History{From: epoch}
	add := func(flow string, cost int, took time.Duration) {
		for range leastSimilar {
			h.Visits = append(h.Visits, &recording.Visit{
				At: epoch, Arrival: dispatch.Arrival{Flow: flow, Cost: 1}, Dispatched: epoch, Ended: epoch.Add(took), Outcome: dispatch.OutcomeDispatched,
			})
			h.Visits[len(h.Visits)-1].Arrival.Cost *= 1 << cost
		}
	}
	add("a", 3, time.Second)
	add("a", 9, 2*time.Second)
	add("b", 3, 4*time.Second)
	s := servicesOf(h, 1, 0)
	unknown := func(flow string, cost int) time.Duration {
		v := &recording.Visit{Arrival: dispatch.Arrival{Flow: flow, Cost: 1}, Outcome: dispatch.OutcomeFlowFull, Ended: epoch}
		v.Arrival.Cost *= 1 << cost
		return s.of(v)
	}
	for range 20 {
		if a, b, c, d := unknown("a", 3), unknown("a", 9), unknown("b", 3), unknown("c", 9); a != time.Second || b != 2*time.Second || c != 4*time.Second || d != 2*time.Second {
			t.Fatal(a, b, c, d)
		}
	}
	if got := s.of(h.Visits[0]); got != time.Second || s.others != 80 || s.asked != 81 {
		t.Errorf("%v, %d of %d", got, s.others, s.asked)
	}
	if got := servicesOf(&recording.History{}, 1, 0).of(&recording.Visit{}); got != defaultService {
		t.Error(got)
	}
	half := servicesOf(h, 1, 0.5) // a half of the known ones take another's
	for _, v := range h.Visits[:10] {
		half.of(v)
	}
	if half.others != 5 {
		t.Errorf("%d of 10", half.others)
	}
}

// The first error is that of the worst flow.
func TestTheErrorIsThatOfTheWorstFlow(t *testing.T) {
	_, h := recordingOf(t, "weights", "small", false)
	c, flows := compare(t, h, ClientsAuto, readConfig(t, "three"))
	points, percent := 0.0, 0.0
	for _, f := range flows {
		points, percent = max(points, f.ErrorPoints), max(percent, f.ErrorPercent)
	}
	if c.Error.SharePoints != points || c.Error.WaitPercent != percent || flows[c.Error.ShareFlow].ErrorPoints != points || points == 0 {
		t.Errorf("%+v, want %v points and %v %%", c.Error, points, percent)
	}
}

// The error names a tier that a configuration lacks, and a change of the unit. Flows beyond the requested ones are one
// row.
func TestNotesOfAComparison(t *testing.T) {
	_, h := recordingOf(t, "tiers", "preempt", false)
	d := readConfig(t, "small")
	d.Cost = "requests"
	c, err := Compare(&CompareOptions{Configs: []RecordedOptions{{Name: "new", Config: &d}}, Clients: ClientsAuto, Flows: 1}, h)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Write(&text); err != nil {
		t.Fatal(err)
	}
	if o := c.Configurations[0]; len(o.Flows) != 2 || o.Flows[1].Flow != "other" || o.Flows[0].Before.Requests+o.Flows[1].Before.Requests != o.All.Before.Requests {
		t.Errorf("%+v", o.Flows)
	}
	for _, want := range []string{"prediction error", "new charges requests alike", "share of tokens", "\nother "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	for _, v := range h.Visits {
		v.Arrival.TierName = "vip"
	}
	if c, _ = compare(t, h, ClientsAuto, readConfig(t, "small")); !strings.Contains(strings.Join(c.Notes, "\n"), `new has no tier "vip": the`) {
		t.Error(c.Notes)
	}
}
