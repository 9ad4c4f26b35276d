package recording_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// life is one request of a driver.
type life struct {
	dispatch.Waiter
	id      string
	gone    bool // its client is
	granted bool // after the last event, and it was not told
	query   *scheduling.Query
}

// deed is the result of an event for a request.
type deed struct {
	number   uint64
	flow     string
	tier     int
	stage    dispatch.Stage
	outcome  dispatch.Outcome
	endpoint string
	queued   bool
}

// did notes the result of an event for a request.
func (d *driver) did(w *dispatch.Waiter) {
	n := deed{w.Number(), w.Flow(), w.Tier(), w.Stage(), w.Outcome(), "", w.WasQueued()}
	if l := w.Lease(); l != nil {
		if e, ok := d.snapshot.ByID(l.Endpoint()); ok {
			n.endpoint = e.Address
		}
	}
	d.story = append(d.story, n)
	if d.records != nil {
		d.keepRecord(w)
	}
}

// keepRecord makes the record of a decision, as a stream does.
func (d *driver) keepRecord(w *dispatch.Waiter) {
	r := decision.Record{Outcome: w.Outcome().String()}
	switch w.Stage() {
	case dispatch.StageWaiting:
		return
	case dispatch.StageGranted, dispatch.StageSent:
		r.Outcome = decision.InFlight
	case dispatch.StageEnded:
		if had := d.records[w.Number()]; had.Outcome == decision.InFlight { // it keeps what it was granted with
			had.Outcome, had.RetryAfter = r.Outcome, w.RetryAfter().Seconds()
			d.records[w.Number()] = had
			return
		}
		r.RetryAfter = w.RetryAfter().Seconds()
	default:
	}
	if r.Facts = *w.Facts(); r.Limit != nil {
		r.Limit.Holders = d.machine.HoldersOf(r.Limit)
	}
	q := w.Owner().(*life).query
	r.Model, r.Placement = q.Recalled().Model, q.Explained()
	if r.Placement != nil {
		r.Endpoint = r.Placement.Chosen
	}
	q.Watch()
	d.records[w.Number()] = r
}

// driver drives a machine as a controller does and records it. Random numbers determine what happens.
type driver struct {
	t         testing.TB
	lot       *rand.Rand
	classes   *rand.Rand // the lot of classes and priorities; nil: a run without them
	dynamo    *rand.Rand // the lot of their rings, limits, ageing and busy rules; nil: a run without them
	format    *recording.Format
	machine   *dispatch.Machine
	board     *scheduling.Board
	scheduler *scheduling.Scheduler
	snapshot  *scheduling.Snapshot
	older     *scheduling.Snapshot // some requests were prepared before the last change
	config    dispatch.Config
	recorder  *recording.Recorder
	now       time.Time
	alive     []*life
	version   uint64
	counts    map[string]int             // what has happened
	verdicts  [][2]int                   // where they are in the present segment
	own       *life                      // who has just arrived
	story     []deed                     // what became of whom, in order
	forgetful bool                       // the first preemptor is not recorded
	forgot    bool                       // it has come
	quotas    bool                       // of two flows
	users     bool                       // of tenants, with caps
	circuits  bool                       // engines that fail are shut
	records   map[uint64]decision.Record // by number; nil: nobody asks for them
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func newDriver(t testing.TB, seed uint64, limit int, hide func(string) string) *driver {
	t.Helper()
	d := &driver{
		t: t, lot: rand.New(rand.NewPCG(seed, 1)), now: start, counts: map[string]int{}, circuits: seed%3 != 2, quotas: seed%2 == 1, users: seed%4 == 1,
	}
	if seed%2 == 0 {
		d.classes = rand.New(rand.NewPCG(seed, 2))
		d.dynamo = rand.New(rand.NewPCG(seed, 3))
	}
	var err error
	if d.format, err = recording.NewFormat(placement.On(nil)); err != nil {
		t.Fatal(err)
	}
	d.config = d.someConfig()
	d.scheduler = d.someScheduler()
	d.board = scheduling.NewBoard(d.scheduler, rand.New(rand.NewPCG(seed, 2)))
	d.snapshot = d.board.Snapshot()
	d.older = d.snapshot
	if d.machine, err = dispatch.New(d.config, placement.On(d.board), rand.New(rand.NewPCG(seed, 3))); err != nil {
		t.Fatal(err)
	}
	d.record(limit, hide)
	return d
}

// record begins a recording of the machine as it is; an earlier one ends.
func (d *driver) record(limit int, hide func(string) string) {
	d.t.Helper()
	var err error
	if d.recorder, err = d.format.New(d.config, limit, hide); err == nil {
		err = d.recorder.Begin(d.now, d.machine, d.board, d.config, d.live)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// live yields the requests that have not ended.
func (d *driver) live(yield func(*dispatch.Waiter, string) bool) {
	for _, l := range d.alive {
		if l.Stage() != dispatch.StageEnded && !yield(&l.Waiter, l.id) {
			return
		}
	}
}

func (d *driver) chance(n int) bool { return d.lot.IntN(n) == 0 }

// step makes one event happen.
func (d *driver) step() {
	d.now = d.now.Add(time.Duration(d.lot.ExpFloat64() * float64(20*time.Millisecond)))
	switch n := d.lot.IntN(100); {
	case n < 40:
		d.arrive()
	case n < 70:
		d.finish()
	case n < 80:
		d.firstByte()
	case n < 84:
		d.cancel()
	case n < 87:
		d.servedElsewhere()
	case n < 92:
		d.recorder.Advance(d.now)
		d.call(func() { d.machine.Advance(d.now) })
	case n < 94:
		o := []dispatch.Outcome{dispatch.OutcomeNoEndpoint, dispatch.OutcomeNoMemory, dispatch.OutcomeInternal}[d.lot.IntN(3)]
		flow := d.flow()
		d.recorder.Refuse(d.now, &dispatch.Refusal{Flow: flow, Model: "m", Outcome: o, RetryAfter: d.machine.Refuse(d.now, o)})
	case n < 96:
		d.change()
	case n < 98:
		d.measure()
	default:
		d.reload()
	}
}

func (d *driver) flow() string { return fmt.Sprintf("flow-%d", d.lot.IntN(8)) }

// measure makes an event of what others hold, of an engine's signals, or of a request's cost.
func (d *driver) measure() {
	var held *dispatch.Lease
	if l := d.some(dispatch.StageSent, dispatch.StageStreaming); l != nil {
		held = l.Lease()
	}
	switch {
	case d.chance(3):
		changes := d.others()
		d.recorder.Foreign(d.now, changes)
		d.call(func() { d.machine.SetForeign(d.now, changes) })
	case d.chance(3):
		e := dispatch.Endpoint(d.lot.IntN(7))
		s := dispatch.Signals{CacheUsed: d.lot.Int32N(1000), CacheTokens: d.lot.Int64N(1 << 40), Preemptions: d.lot.Int64N(9)}
		if s.Adapters = d.board.AdapterState(e); d.chance(3) {
			s.Adapters = &scheduling.AdapterState{Places: d.lot.IntN(3), Loaded: []string{"chat", "agent", "embed"}[d.lot.IntN(3):]}
		}
		if s.Unloaded = d.board.UnloadedBy(e); s.Preemptions == 1 {
			s.Unloaded = [...]*scheduling.Unloaded{nil, {Models: []string{"chat"}}, {Models: []string{"agent", "chat"}}}[s.CacheTokens%3]
		}
		s.Utilised, s.StatesUtilised = s.CacheUsed, s.Preemptions%2 == 0
		for range 1 + d.lot.IntN(4) { // bounds follow what is said twice
			s.Known, s.Running, s.Waiting, s.Slots = !d.chance(9), d.lot.Int32N(9), d.lot.Int32N(4), d.lot.Int32N(9)/8*5
			s.Produced += d.lot.Int64N(1000)
			d.recorder.Signals(d.now, e, s)
			d.call(func() { d.machine.SetSignals(d.now, e, s) })
		}
	case held == nil:
	case d.chance(2):
		to, tokens := fairqueue.Cost(d.lot.IntN(60)), stock.Tokens(d.lot.IntN(60))
		d.recorder.Raise(d.now, held, to, tokens)
		d.call(func() { d.machine.Raise(d.now, held, to, tokens) })
	default:
		to, tokens := fairqueue.Cost(d.lot.IntN(60)), stock.Tokens(d.lot.IntN(60))
		d.recorder.TrueUp(d.now, held, to, tokens)
		d.call(func() { d.machine.TrueUp(d.now, held, to, tokens) })
	}
}

// others says what others hold at some of the backends.
func (d *driver) others() (changes []stock.Foreign) {
	for range d.lot.IntN(4) {
		held := stock.Amount{Requests: d.lot.IntN(3), Tokens: stock.Tokens(d.lot.Int64N(50))}
		changes = append(changes, stock.Foreign{ID: stock.BackendID(d.lot.IntN(7)), Held: held})
	}
	return changes
}

func (d *driver) arrive() {
	l := &life{}
	a := dispatch.Arrival{Flow: d.flow(), Tier: d.lot.IntN(3), Cost: fairqueue.Cost(d.lot.IntN(20)), Owner: l}
	if d.chance(2) {
		a.Tokens = stock.Tokens(d.lot.IntN(20))
	}
	if d.chance(5) {
		a.TierName = []string{"critical", "batch", "nobody's"}[d.lot.IntN(3)]
	}
	if l := d.classes; l != nil && l.IntN(3) == 0 {
		a.Path = &fairqueue.Path{Class: []string{"a", "b", "c"}[l.IntN(3)], Strict: l.IntN(2), Priority: l.IntN(4)}
		if l.IntN(2) == 0 {
			a.Path.Ring, a.Path.Prompt = []string{"", "r"}[l.IntN(2)], fairqueue.PromptOf(int64(l.IntN(100)), int64(l.IntN(50)))
		}
	}
	if d.quotas {
		if a.Path == nil {
			a.Path = &fairqueue.Path{}
		}
		a.Path.Role = []string{"", "student", "admin"}[d.machine.Arrived()%3]
		a.Tenant, a.Uses = a.Flow, int64(d.machine.Arrived()%40)
	}
	if d.users {
		if a.Path == nil {
			a.Path = &fairqueue.Path{}
		}
		a.Path.Under = []string{fmt.Sprint("user-", d.machine.Arrived()%3)}
	}
	if d.chance(4) {
		a.Deadline = d.now.Add(time.Duration(d.lot.IntN(3000)) * time.Millisecond)
	}
	snapshot := d.snapshot
	if d.chance(3) {
		snapshot = d.older
	}
	ask := scheduling.Ask{Model: []string{"", "chat", "agent", "embed"}[d.lot.IntN(4)], Adapter: d.chance(4)}
	if d.chance(4) {
		ask.Subset = scheduling.Subset{Set: true, Entries: []string{"10.0.0.1:80", "10.0.0.2", "10.0.0.3:80", "[::1]:5"}[d.lot.IntN(3):]}
	}
	if n := d.machine.Arrived(); n%5 == 0 {
		ask.Needs = scheduling.Needs(n/5) & scheduling.AllNeeds
	}
	q, err := d.scheduler.Prepare(snapshot, ask)
	if err != nil {
		return
	}
	d.rate(q)
	a.Placement = q
	if l.query = q; d.records != nil {
		a.Explain = true
		q.Watch()
	}
	id := ""
	switch d.lot.IntN(3) {
	case 0:
		id = fmt.Sprintf("%08x-0000-4000-8000-%012x", d.lot.Uint32(), d.lot.Uint32())
	case 1:
		id = fmt.Sprintf("Call %d", d.lot.IntN(1000))
	}
	l.id = id
	passOn := d.chance(20)
	d.own = l
	d.recorder.Arrive(d.now, &l.Waiter, a, id, passOn)
	d.alive = append(d.alive, l) // its place may be taken in the same event
	d.call(func() {
		if passOn {
			d.machine.PassOn(d.now, &l.Waiter, a)
		} else {
			d.machine.Arrive(d.now, &l.Waiter, a)
		}
	})
}

// some returns a living request in one of the stages, or nil if there is none.
func (d *driver) some(stages ...dispatch.Stage) *life {
	d.alive = slices.DeleteFunc(d.alive, func(l *life) bool { return l.Stage() == dispatch.StageEnded })
	for range 20 {
		if len(d.alive) > 0 {
			if l := d.alive[d.lot.IntN(len(d.alive))]; slices.Contains(stages, l.Stage()) {
				return l
			}
		}
	}
	return nil
}

func (d *driver) finish() {
	if l := d.some(dispatch.StageSent, dispatch.StageStreaming); l != nil {
		cost := fairqueue.UnknownCost
		if d.chance(3) {
			cost = fairqueue.Cost(d.lot.IntN(60))
		}
		lot := rand.New(rand.NewPCG(d.machine.Arrived(), 78))
		if _, metered := l.Quota(); metered {
			tokens := int64(lot.IntN(60))
			d.recorder.Used(d.now, l.Lease(), tokens)
			d.machine.Used(d.now, l.Lease(), tokens)
		}
		if lot.IntN(4) == 0 {
			d.recorder.Complete(d.now, l.Lease(), cost)
			d.call(func() { d.machine.Complete(d.now, l.Lease(), cost) })
			return
		}
		a := dispatch.Answer{Status: []int{200, 200, 500, 503, 429}[lot.IntN(5)], RetryAfter: time.Duration(lot.IntN(3)) * time.Second}
		d.recorder.Answered(d.now, l.Lease(), cost, a)
		d.call(func() { d.machine.Answered(d.now, l.Lease(), cost, a) })
	}
}

func (d *driver) firstByte() {
	if l := d.some(dispatch.StageSent); l != nil {
		d.recorder.FirstByte(l.Lease())
		d.machine.FirstByte(l.Lease())
		if d.dynamo != nil {
			d.recorder.Prefilled(d.now, l.Lease())
			d.call(func() { d.machine.Prefilled(d.now, l.Lease()) })
		}
	}
}

func (d *driver) cancel() {
	if l := d.some(dispatch.StageWaiting, dispatch.StageGranted); l != nil {
		if l.gone = true; d.chance(2) {
			return // it is found out when it could preempt, or later
		}
		d.recorder.Cancel(d.now, &l.Waiter, dispatch.OutcomeClientCancelled)
		d.own = l
		d.call(func() { d.machine.Cancel(d.now, &l.Waiter, dispatch.OutcomeClientCancelled) })
	}
}

func (d *driver) servedElsewhere() {
	if l := d.some(dispatch.StageSent); l != nil {
		e := dispatch.Endpoint(d.lot.IntN(7))
		d.recorder.ServedElsewhere(d.now, l.Lease(), e, 200)
		d.call(func() { d.machine.ServedElsewhere(d.now, l.Lease(), e, 200) })
	}
}

func (d *driver) change() {
	next, ready := d.somePool()
	d.older, d.snapshot = d.snapshot, next
	d.board.SetSnapshot(next)
	others := d.others()
	d.recorder.Backends(d.now, ready, others)
	d.call(func() { d.machine.SetBackends(d.now, ready, others) })
}

func (d *driver) reload() {
	c := d.someConfig()
	if d.machine.Configurable(c) != nil {
		return
	}
	d.config, d.scheduler = c, d.someScheduler()
	d.board.SetScheduler(d.scheduler)
	d.recorder.Configure(d.now, c)
	d.call(func() {
		if err := d.machine.Configure(d.now, c); err != nil {
			panic(err)
		}
	})
}

// call runs an event and everything that belongs to it, as the controller does.
func (d *driver) call(event func()) {
	event()
	for v := d.machine.Preemptor(); v != nil; v = d.machine.Preemptor() {
		if d.forgetful {
			d.forgot = true
			return
		}
		if v.Owner().(*life).gone {
			d.recorder.PreemptorGone(d.now, dispatch.OutcomeClientCancelled)
			d.machine.PreemptorGone(d.now, dispatch.OutcomeClientCancelled)
			d.did(v)
		} else {
			d.recorder.Preempt(d.now)
			d.machine.Preempt(d.now)
		}
	}
	if d.own != nil {
		d.did(&d.own.Waiter)
		d.own = nil
	}
	for _, v := range d.machine.Verdicts() {
		d.did(v)
	}
	verdicts := slices.Clone(d.machine.Verdicts())
	before := d.recorder.Len()
	d.recorder.Verdicts(verdicts)
	d.verdicts = append(d.verdicts, [2]int{before, d.recorder.Len()})
	for _, v := range verdicts {
		d.counts[fmt.Sprint(v.Stage(), v.Outcome())]++
	}
	for _, l := range d.alive {
		if l.granted && l.Stage() == dispatch.StageWaiting { // its place was taken
			d.did(&l.Waiter)
		}
		if l.Stage() == dispatch.StageGranted && !d.chance(3) { // the others are told later
			d.recorder.Told(&l.Waiter)
			d.machine.Told(&l.Waiter)
		}
		l.granted = l.Stage() == dispatch.StageGranted
	}
}

// replay replays a file.
func (d *driver) replay(text []byte) (recording.Summary, error) {
	return d.format.Replay(bytes.NewReader(text))
}

// explain explains a request of a file.
func (d *driver) explain(text []byte, name string) (string, error) {
	explained, err := d.format.Explain(bytes.NewReader(text), recording.Request{ID: name})
	if err != nil {
		return "", err
	}
	return explained[0].Story, nil
}

// bytes returns the recording as a file.
func (d *driver) bytes() []byte {
	d.t.Helper()
	d.recorder.Seal()
	text, err := d.recorder.Bytes()
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

// rate says something of the prompt of every third request: of endpoints that there are, and of one that may be gone.
func (d *driver) rate(q *scheduling.Query) {
	l := rand.New(rand.NewPCG(d.machine.Arrived(), 77)) // the driver's own lot stays what it was
	if l.IntN(3) > 0 {
		return
	}
	r := &scheduling.Ratings{Prompt: 1 + l.Int64N(5000)}
	r.Floor = l.Int64N(r.Prompt)
	for id := range scheduling.EndpointID(4) {
		switch l.IntN(4) {
		case 0:
			r.Above = append(r.Above, scheduling.Cached{ID: id, Tokens: r.Floor + l.Int64N(r.Prompt-r.Floor+1)})
		case 1:
			r.Near = append(r.Near, id)
		}
	}
	r.Watched = l.IntN(3) == 0
	q.Rate(r)
}
