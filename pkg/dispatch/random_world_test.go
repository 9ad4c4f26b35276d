package dispatch_test

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// world is the view from outside: the configuration, the pool, the requests. Its rules use only these to decide which
// requests may go where.
type world struct {
	config   dispatch.Config
	pool     []scheduling.Endpoint
	usable   []*scheduling.Endpoint // of it, those that are ready
	foreign  [mostEndpoints]stock.Amount
	waiting  []*request // by arrival; one that went back has its old place
	running  []*request
	ranks    map[int]int    // of tiers by identifier; 0 is the highest
	named    map[string]int // identifiers of the configured tiers
	released time.Time      // the last release from the queue; zero: the next may follow at once
	now      time.Time
	// Requests that count at each endpoint because its engine fails: at least, and at most while an event goes on.
	withheld, mostWithheld [mostEndpoints]int
	m                      *dispatch.Machine
	spells                 map[string][]string // the roles in which each tenant has come since it last had nothing here
}

// endpoint is the endpoint with this identifier, or nil.
func (o *world) endpoint(id scheduling.EndpointID) *scheduling.Endpoint {
	for i := range o.pool {
		if o.pool[i].ID == id {
			return &o.pool[i]
		}
	}
	return nil
}

// serves reports whether the request may use the endpoint.
func (o *world) serves(r *request, e *scheduling.Endpoint) bool {
	ask := &r.load.ask
	return e.Ready && e.Serves(ask.Model) && e.Lacks&ask.Needs == 0 && (!ask.Subset.Set || slices.Contains(ask.Subset.Entries, e.Address))
}

// bounds is an endpoint's share of the band, in millionths of a request.
func (o *world) bounds(e *scheduling.Endpoint) (lower, upper int64) {
	s := &o.config.Stock
	const one = 1_000_000
	switch {
	case s.Unbounded:
		return 1e9 * one, 1e9 * one
	case e.Slots > 0:
		return int64(e.Slots) * one, int64(e.Slots) * one
	case s.SlotsPerBackend > 0:
		return int64(s.SlotsPerBackend) * one, int64(s.SlotsPerBackend) * one
	}
	deviation := int64(s.PercentageDeviationForBounds) * one / int64(stock.One)
	lower, upper = int64(s.WatermarkPerBackend)*(one-deviation), int64(s.WatermarkPerBackend)*(one+deviation)
	if s.LowerBoundPerBackend >= 0 {
		lower = int64(s.LowerBoundPerBackend) * one
	}
	if s.UpperBoundPerBackend >= 0 {
		upper = int64(s.UpperBoundPerBackend) * one
	}
	return lower, upper
}

// tokenBounds are an endpoint's bounds in tokens; 0: none.
func (o *world) tokenBounds() (lower, upper stock.Tokens) {
	t, s := o.config.Stock.Tokens, &o.config.Stock
	if t.Watermark == 0 {
		return 0, 0
	}
	ceil := func(m stock.Micro) stock.Tokens { return stock.Tokens((m + stock.One - 1) / stock.One) }
	lower = ceil(stock.Micro(t.Watermark) * (stock.One - s.PercentageDeviationForBounds))
	upper = ceil(stock.Micro(t.Watermark) * (stock.One + s.PercentageDeviationForBounds))
	if t.Lower > 0 {
		lower = t.Lower
	}
	if t.Upper > 0 {
		upper = t.Upper
	}
	return lower, upper
}

// at returns the stock at a ready endpoint, own and foreign. Tokens are there as long as a request is.
func (o *world) at(id scheduling.EndpointID) (n int, tokens stock.Tokens) {
	if n = o.foreign[id].Requests; n > 0 {
		tokens = o.foreign[id].Tokens
	}
	n += o.withheld[id]
	for _, r := range o.running {
		if r.at == id {
			n++
			tokens += r.holds
		}
	}
	return n, tokens
}

// space is the requests that some endpoints have room for. Each has what it lacks of its own bound; if that is less than a
// request, it may borrow the rest from others that have less to spare. held is what is there.
func (o *world) space(endpoints []*scheduling.Endpoint, upper bool) (space, held int) {
	const one = 1_000_000
	spare := int64(0)
	for _, e := range endpoints {
		own, most := o.bounds(e)
		if upper {
			own = most
		}
		n, _ := o.at(e.ID)
		held += n
		switch lacks := own - int64(n)*one; {
		case lacks >= 0:
			space += int(lacks / one)
			spare += lacks % one
		default: // of what it has too much only the part of a request is others'
			spare += lacks % one
		}
	}
	return space + max(0, int((spare+one-1)/one)), held
}

// ready are the endpoints that are.
func (o *world) ready() []*scheduling.Endpoint { return o.usable }

// has changes the pool.
func (o *world) has(pool []scheduling.Endpoint) {
	o.pool, o.usable = pool, nil
	for i := range pool {
		if pool[i].Ready {
			o.usable = append(o.usable, &pool[i])
		}
	}
}

// poolBelow reports whether the stock is below a bound of the pool. One request may always be in flight.
func (o *world) poolBelow(upper bool) bool {
	lowerTokens, upperTokens := o.tokenBounds()
	below := func(e *scheduling.Endpoint) bool {
		_, tokens := o.at(e.ID)
		most := lowerTokens
		if upper {
			most = upperTokens
		}
		return most == 0 || tokens < most
	}
	space, held := o.space(o.ready(), upper)
	return len(o.ready()) > 0 && (held == 0 || space > 0 && slices.ContainsFunc(o.ready(), below))
}

// capacity is the most leases below the upper bound.
func (o *world) capacity() int {
	sum := int64(0)
	for i := range o.pool {
		if o.pool[i].Ready {
			_, upper := o.bounds(&o.pool[i])
			sum += upper
		}
	}
	return int((sum + 999_999) / 1_000_000)
}

// available is what capacity and reservations leave to a tier.
func (o *world) available(tier int) int {
	capacity := o.capacity()
	remaining := capacity
	free, _ := o.space(o.ready(), true)
	inflight := map[int]int{} // at ready endpoints
	for _, r := range o.running {
		if slices.ContainsFunc(o.ready(), func(e *scheduling.Endpoint) bool { return e.ID == r.at }) {
			inflight[r.w.Granted().Tier()]++
		}
	}
	for i, t := range o.config.Queue.Tiers { // highest first; a tier that drains reserves nothing
		cfg, id := o.config.Tiers[i], o.named[t.Name]
		share := (int64(cfg.ReservedPerSlot)*int64(capacity) + int64(stock.One) - 1) / int64(stock.One)
		reserved := min(max(cfg.ReservedFloor, int(min(share, int64(capacity)))), remaining)
		remaining -= reserved
		if o.ranks[id] < o.ranks[tier] {
			free -= max(0, reserved-inflight[id])
		}
	}
	return free
}

// room describes the room for a request.
type room struct {
	ready  bool // an endpoint that it may use is ready
	open   bool // one of these is below its own limits and not at its flow's cap
	capped bool // one of these is at its flow's cap
	below  bool // one of these is not at its flow's cap, whether or not it is below its own limits
	lower  bool // the stock of all of these together is below the lower bound
	upper  bool // or the upper
}

// sameCap reports whether the leases of one count against the cap of the other: they are of one tenant, in whatever tier.
func sameCap(a, b *request) bool { return a.load.flow == b.load.flow }

// full reports whether the request's flow is at its cap at an endpoint.
func (o *world) full(r *request, e scheduling.EndpointID) bool {
	c := &o.config
	if c.MaxInFlightPerFlowPerBackend == 0 && c.MaxTokensInFlightPerFlowPerBackend == 0 {
		return false
	}
	n, tokens := o.places(r, e), stock.Tokens(0)
	for _, other := range o.running {
		if other.counts && other.at == e && sameCap(other, r) {
			n++
			tokens += other.holds
		}
	}
	return c.MaxInFlightPerFlowPerBackend > 0 && n >= c.MaxInFlightPerFlowPerBackend ||
		c.MaxTokensInFlightPerFlowPerBackend > 0 && tokens >= c.MaxTokensInFlightPerFlowPerBackend
}

// user is the user of a request's tenant.
func user(r *request) string {
	if under := r.path().Under; len(under) > 0 {
		return under[0]
	}
	return ""
}

// sameUser reports whether two requests are of one user of one tenant.
func sameUser(a, b *request) bool { return sameCap(a, b) && user(a) == user(b) }

// userAtCap reports whether the request's user is at its cap.
func (o *world) userAtCap(r *request) bool {
	if o.config.Queue.Levels < 2 {
		return false
	}
	n, tokens, c := 0, stock.Tokens(0), dispatch.LevelCaps{}
	if len(o.config.Levels) > 1 {
		c = o.config.Levels[1]
	}
	c.MaxInFlight = o.mostByRole(r, c.MaxInFlight)
	for _, other := range o.running {
		if sameUser(other, r) {
			n++
			tokens += other.holds
		}
	}
	return c.MaxInFlight > 0 && n >= c.MaxInFlight || c.MaxTokensInFlight > 0 && tokens >= c.MaxTokensInFlight
}

// atCap reports whether the request's flow, or its user, is at its total cap.
func (o *world) atCap(r *request) bool {
	if o.userAtCap(r) {
		return true
	}
	c, most := &o.config, o.mostOf(r)
	if most == 0 && c.MaxTokensInFlightPerFlow == 0 {
		return false
	}
	n, tokens := o.places(r, dispatch.NoEndpoint), stock.Tokens(0)
	for _, other := range o.running {
		if sameCap(other, r) {
			n++
			tokens += other.holds
		}
	}
	return most > 0 && n >= most || c.MaxTokensInFlightPerFlow > 0 && tokens >= c.MaxTokensInFlightPerFlow
}

// opens reports whether an endpoint takes another request, as far as its own limits go.
func (o *world) opens(e *scheduling.Endpoint) bool {
	n, tokens := o.at(e.ID)
	_, most := o.tokenBounds()
	_, upper := o.bounds(e)
	return (e.MaxInFlight == 0 || n < e.MaxInFlight) && (most == 0 || tokens < most) && int64(n)*1_000_000 < max(upper, 1)
}

// roomFor looks for room for a request.
func (o *world) roomFor(r *request) (f room) {
	var lane []*scheduling.Endpoint
	for i := range o.pool {
		e := &o.pool[i]
		if !o.serves(r, e) {
			continue
		}
		f.ready = true
		lane = append(lane, e)
		full := o.full(r, e.ID)
		f.capped = f.capped || full
		f.below = f.below || !full
		f.open = f.open || !full && o.opens(e)
	}
	lower, held := o.space(lane, false)
	upper, _ := o.space(lane, true)
	f.lower, f.upper = held == 0 || lower > 0, held == 0 || upper > 0
	return f
}

// couldGo reports whether a request could go if there were room: an endpoint is ready that it may use, and its flow is
// below its caps there.
func (o *world) couldGo(r *request) bool {
	f := o.roomFor(r)
	return f.ready && !o.atCap(r) && (f.open || !f.capped) && !o.blocked(r)
}

// mightGo is couldGo for one whose flow is below its cap only where an endpoint's own limits let nobody go: the machine
// may know that or not.
func (o *world) mightGo(r *request) bool { return o.roomFor(r).below && !o.atCap(r) && !o.blocked(r) }

// mayGo reports whether a request may go now: within the lower bound, for a release, or the upper, for a bypass.
func (o *world) mayGo(r *request, upper bool) bool {
	if !o.poolBelow(upper) || o.available(r.w.Tier()) <= 0 || o.atCap(r) {
		return false
	}
	f := o.roomFor(r)
	return f.open && (f.lower || upper && f.upper) && !o.blocked(r)
}

// mayBePromoted is mayGo for the head of a starved tier.
func (o *world) mayBePromoted(r *request) bool {
	f := o.roomFor(r)
	return o.poolBelow(true) && !o.atCap(r) && f.open && f.upper && !o.blocked(r)
}

// busy reports whether a ready endpoint has a request.
func (o *world) busy() bool {
	_, held := o.space(o.ready(), true)
	return held > 0
}

// heldApart reports whether a release must wait for the one before.
func (o *world) heldApart() bool {
	return o.config.ReleaseSpacing > 0 && o.busy() && o.now.Before(o.released.Add(o.config.ReleaseSpacing))
}

// above reports whether the tier of a is higher than that of b.
func (o *world) above(a, b *request) bool { return o.ranks[a.w.Tier()] < o.ranks[b.w.Tier()] }

// strict reports whether higher tiers go first.
func (o *world) strict() bool { return o.config.Queue.TierMode == fairqueue.Strict }

// class is the name of the class that a request is in; the first one's if it names none that there is.
func (o *world) class(r *request) string {
	name := r.path().Class
	for _, c := range o.config.Queue.Classes {
		if c.Name == name {
			return name
		}
	}
	if len(o.config.Queue.Classes) > 0 {
		return o.config.Queue.Classes[0].Name
	}
	return ""
}
