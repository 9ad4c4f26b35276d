package scheduling

import (
	"cmp"
	"math/big"
	"net/netip"
	"slices"
)

// oracle is the scheduler in readable instead of fast form. It keeps every lease in a list, compares endpoints by their
// text, loads as rational numbers, and costs as integers that it rounds by the rule of doc.go. It breaks ties by
// rotation, or takes the first.
type oracle struct {
	pool   []Endpoint // by ID
	bounds map[EndpointID][2]int64
	others map[EndpointID]int64 // others' requests at the ready endpoints
	leases []EndpointID
	costs  []int64              // of the leases
	unread []int64              // of the leases: the uncached tokens of their prompts that count
	most   map[EndpointID]int64 // upper bounds of the cost, if any
	least  map[EndpointID]int64 // and the lower ones
	theirs map[EndpointID]int64 // cost of others' requests
	last   EndpointID
	first  bool
}

func (o *oracle) stock(id EndpointID) (n int64) {
	for _, lease := range o.leases {
		if lease == id {
			n++
		}
	}
	return n
}

// held returns the requests at the endpoint, of Weir and of others.
func (o *oracle) held(id EndpointID) int64 { return o.stock(id) + o.others[id] }

// cost returns the cost of the requests at the endpoint, of Weir and of others.
func (o *oracle) cost(id EndpointID) (sum int64) {
	for i, lease := range o.leases {
		if lease == id {
			sum += o.costs[i]
		}
	}
	return sum + o.theirs[id]
}

// toRead returns the unread tokens at an endpoint.
func (o *oracle) toRead(id EndpointID) (sum int64) {
	for i, lease := range o.leases {
		if lease == id {
			sum += o.unread[i]
		}
	}
	return sum
}

// reading reports whether any endpoint has unread tokens.
func (o *oracle) reading() bool { return slices.Max(append([]int64{0}, o.unread...)) > 0 }

// belowCost reports whether a ready endpoint costs less than its own bound, or has none.
func (o *oracle) belowCost(bounds map[EndpointID]int64) bool {
	return slices.ContainsFunc(o.pool, func(e Endpoint) bool {
		return e.Ready && (bounds[e.ID] == 0 || o.cost(e.ID) < bounds[e.ID])
	})
}

// lane returns the ready endpoints that the request may use.
func (o *oracle) lane(ask Ask) (lane []Endpoint) {
	for _, e := range o.pool {
		serves := ask.Model == "" || len(e.Models) == 0 || slices.Contains(e.Models, ask.Model)
		if e.Ready && serves && e.Lacks&ask.Needs == 0 && (!ask.Subset.Set || slices.ContainsFunc(ask.Subset.Entries, func(entry string) bool { return names(entry, e.Address) })) {
			lane = append(lane, e)
		}
	}
	return lane
}

// names reports whether a subset's entry names the address, without canonical forms.
func names(entry, address string) bool {
	at := netip.MustParseAddrPort(address)
	if both, err := netip.ParseAddrPort(entry); err == nil {
		return both == at
	}
	host, err := netip.ParseAddr(entry)
	return err == nil && host == at.Addr()
}

func (o *oracle) load(e Endpoint) *big.Rat {
	load := big.NewRat((o.held(e.ID)+1)*Millionths, max(o.bounds[e.ID][1], 1)) // the test has no endpoint without an upper bound
	if most := o.most[e.ID]; most > 0 {
		if cost := big.NewRat(o.cost(e.ID), most); cost.Cmp(load) > 0 {
			return cost
		}
	}
	return load
}

// room reports whether the lane's band has room for another request. A lane that is the whole pool has no band here.
// There is room if an endpoint lacks a whole request of its bound. There is also room if all endpoints together have
// less than all their bounds, not counting what they have above their bounds rounded up.
func (o *oracle) room(lane []Endpoint, name string, bound Bound) bool {
	var held, room int64
	lacks := false
	for _, e := range lane {
		own := o.bounds[e.ID][1]
		if bound == BelowLower {
			own = o.bounds[e.ID][0]
		}
		left := own - o.held(e.ID)*Millionths
		for left <= -Millionths {
			left += Millionths
		}
		held += o.held(e.ID)
		room += left
		lacks = lacks || left >= Millionths
	}
	confined := name != "" || len(lane) < len(o.lane(Ask{})) // see board_test.go, TestQueriesFollowTheBoard
	return bound >= Unbounded || !confined || held == 0 || lacks || room > 0
}

func (o *oracle) place(x waiting, bound Bound, except []EndpointID) (EndpointID, []string) {
	lane := o.lane(x.ask)
	if !o.room(lane, x.q.Lane(), bound) {
		return NoEndpoint, nil
	}
	after := o.last
	if o.first {
		after = NoEndpoint
	}
	order := o.choice(x, lane, bound, except, after)
	if len(order) == 0 {
		return NoEndpoint, nil
	}
	return o.take(x, lane, o.favoured(x, order))
}

// favoured returns the first endpoint in order. If that has no more cached than others, it returns the first of the
// endpoints that are ranked for the request and cost at most a quarter more.
func (o *oracle) favoured(x waiting, order []Endpoint) Endpoint {
	best := order[0]
	if x.known == nil || x.known.Prompt == 0 || o.above(x, best) {
		return best
	}
	for _, id := range x.known.Near {
		for _, e := range order {
			if e.ID != id || o.full(e) != o.full(best) || o.taken(e) != o.taken(best) {
				continue
			}
			most := new(big.Int).Add(o.price(best, x.known.Prompt-x.known.Floor), new(big.Int).Div(o.price(best, x.known.Prompt-x.known.Floor), big.NewInt(4)))
			if o.price(e, x.known.Prompt-x.known.Floor).Cmp(most) <= 0 {
				return e
			}
		}
	}
	return best
}

func (o *oracle) above(x waiting, e Endpoint) bool {
	return x.known != nil && slices.ContainsFunc(x.known.Above, func(c Cached) bool { return c.ID == e.ID })
}

// full reports whether the endpoint is full by cost.
func (o *oracle) full(e Endpoint) bool { return o.most[e.ID] > 0 && o.cost(e.ID) >= o.most[e.ID] }

// price returns the cost of a request with so many uncached tokens at the endpoint, in 65,536ths of a token: tokens x
// 64 x load, at most 2^40, plus twice the tokens to read before it.
func (o *oracle) price(e Endpoint, uncached int64) *big.Int {
	load := new(big.Rat).Mul(o.load(e), big.NewRat(64<<16, 1))
	whole := new(big.Int).Div(load.Num(), load.Denom())
	if most := big.NewInt(1 << 40); whole.Cmp(most) > 0 {
		whole = most
	}
	if whole.Sign() == 0 {
		whole = big.NewInt(1)
	}
	return whole.Add(whole.Mul(whole, big.NewInt(max(1, uncached))), big.NewInt(2*65536*o.toRead(e.ID)))
}

// choice returns the endpoints that the request may go to, best first.
func (o *oracle) choice(x waiting, lane []Endpoint, bound Bound, except []EndpointID, after EndpointID) []Endpoint {
	refused := func(e Endpoint) bool { return slices.Contains(except, e.ID) }
	order := slices.DeleteFunc(o.ranked(x, lane, after), refused)
	if room := slices.DeleteFunc(slices.Clone(order), o.taken); len(room) > 0 || bound < Unbounded {
		return room
	}
	if len(order) > 0 || bound == Unbounded {
		return order
	}
	return slices.DeleteFunc(o.order(x, lane, after), func(e Endpoint) bool { return refused(e) || o.limited(e) })
}

// ranked returns the endpoints below their limit, best first, with equals in ring order after an endpoint. Endpoints
// below their bound of requests come first.
func (o *oracle) ranked(x waiting, lane []Endpoint, after EndpointID) []Endpoint {
	order := o.order(x, slices.DeleteFunc(slices.Clone(lane), func(e Endpoint) bool {
		return o.limited(e) || o.full(e)
	}), after)
	slices.SortStableFunc(order, func(a, b Endpoint) int { return cmp.Compare(asInt(o.taken(a)), asInt(o.taken(b))) })
	return order
}

// taken reports whether the endpoint has as many requests as its upper bound allows.
func (o *oracle) taken(e Endpoint) bool {
	return o.bounds[e.ID][1] > 0 && o.held(e.ID)*Millionths >= o.bounds[e.ID][1]
}

// limited reports whether the endpoint is at its limit of requests.
func (o *oracle) limited(e Endpoint) bool {
	return e.MaxInFlight > 0 && o.held(e.ID) >= int64(e.MaxInFlight)
}

// order is endpoints best first.
func (o *oracle) order(x waiting, of []Endpoint, after EndpointID) []Endpoint {
	free := slices.Clone(of)
	loads, prices := map[EndpointID]*big.Rat{}, map[EndpointID]*big.Int{}
	for _, e := range free {
		loads[e.ID], prices[e.ID] = o.load(e), new(big.Int)
		if x.known != nil && x.known.Prompt > 0 {
			prices[e.ID] = o.price(e, x.known.Prompt-x.known.Cached(e.ID))
		} else if o.reading() {
			prices[e.ID] = o.price(e, 1000)
		}
	}
	slices.SortFunc(free, func(a, b Endpoint) int {
		if c := cmp.Compare(asInt(o.full(a)), asInt(o.full(b))); c != 0 {
			return c
		}
		if c := prices[a.ID].Cmp(prices[b.ID]); c != 0 {
			return c
		}
		rated := x.known != nil && x.known.Prompt > 0
		if c := cmp.Compare(asInt(o.above(x, b)), asInt(o.above(x, a))); rated && c != 0 {
			return c
		}
		if c := loads[a.ID].Cmp(loads[b.ID]); c != 0 && !(rated && o.above(x, a)) && !o.reading() {
			return c
		}
		if wrapped := cmp.Compare(asInt(a.ID <= after), asInt(b.ID <= after)); wrapped != 0 {
			return wrapped
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return free
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (o *oracle) take(x waiting, lane []Endpoint, e Endpoint) (EndpointID, []string) {
	destinations := []string{e.Address}
	rest := slices.DeleteFunc(o.ranked(x, lane, e.ID), func(next Endpoint) bool { return next.ID == e.ID })
	for len(rest) > 0 && len(destinations) < 3 {
		next := o.favoured(x, rest)
		destinations = append(destinations, next.Address)
		rest = slices.DeleteFunc(rest, func(o Endpoint) bool { return o.ID == next.ID })
	}
	var unread int64
	if x.known != nil && x.known.Watched && x.known.Prompt > 0 {
		unread = max(1, x.known.Prompt-x.known.Cached(e.ID))
	}
	o.leases, o.costs, o.unread, o.last = append(o.leases, e.ID), append(o.costs, 0), append(o.unread, unread), e.ID
	return e.ID, destinations
}
