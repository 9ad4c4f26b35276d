package simulate

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/weir-epp/weir/internal/splitmix"
)

func itoa(i int) string { return strconv.Itoa(i) }

// name returns the key of the n-th flow.
func (c *Client) name(n int) string {
	if c.Count == 1 {
		return c.Flow
	}
	return c.Flow + "-" + itoa(n+1)
}

// Requests returns the workload's requests. The same seed gives the same ones.
func (w *Workload) Requests(seed uint64) Source {
	all := &merged{length: w.Duration.Std()}
	for i := range w.Clients {
		c := &w.Clients[i]
		popularity := c.Prefix.popularity()
		for n := range int(c.Count) {
			f := &sender{
				Client: c, flow: c.name(n), block: w.Block(), until: w.Duration.Std(), popularity: popularity,
				rng: rand.New(rand.NewPCG(seed, splitmix.Mix(uint64(i)<<32|uint64(n)))), number: uint64(len(all.senders)) << 40,
			}
			f.prefix = splitmix.Mix(textHash(c.prefixName(n)))
			if c.To > 0 {
				f.until = c.To.Std()
			}
			f.index = len(all.senders)
			if f.advance() {
				all.senders = append(all.senders, f)
			}
		}
	}
	slices.SortFunc(all.senders, (*sender).compare)
	return all
}

// prefixName returns the name of the prefix of the n-th flow's prompts.
func (c *Client) prefixName(n int) string {
	if c.Prefix.Name != "" {
		return "shared " + c.Prefix.Name
	}
	return "own " + c.name(n)
}

// popularity returns the cumulative sums of the groups' shares; nil if all are equal.
func (p *Prefix) popularity() []float64 {
	if p.Zipf == 0 {
		return nil
	}
	exponent := float64(p.Zipf.Millionths()) / 1e6
	sums := make([]float64, p.Groups)
	sum := 0.0
	for g := range sums {
		sum += math.Pow(float64(g+1), -exponent)
		sums[g] = sum
	}
	return sums
}

func textHash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// merged is the requests of several senders in order of arrival.
type merged struct {
	senders []*sender // sorted by their next request
	length  time.Duration
}

// Fraction implements Source.
func (m *merged) Fraction() float64 {
	if len(m.senders) == 0 {
		return 1
	}
	return float64(m.senders[0].next) / float64(m.length)
}

// Next implements Source.
func (m *merged) Next() (Request, error) {
	if len(m.senders) == 0 {
		return Request{}, io.EOF
	}
	s := m.senders[0]
	r := s.make()
	if !s.advance() {
		m.senders = m.senders[1:]
		return r, nil
	}
	// It goes behind the senders with earlier requests.
	to, _ := slices.BinarySearchFunc(m.senders[1:], s, (*sender).compare)
	copy(m.senders, m.senders[1:1+to])
	m.senders[to] = s
	return r, nil
}

// sender is one flow's source of requests.
type sender struct {
	*Client
	flow       string
	index      int
	block      int
	until      time.Duration
	prefix     uint64    // common hash of its prefix's blocks
	popularity []float64 // sums, by group; nil: even
	rng        *rand.Rand

	active time.Duration // time spent sending so far
	next   time.Duration // when its next request arrives
	burst  int64         // requests left in the current burst
	sent   int64
	begun  int64  // of a closed loop: requests that begin one
	number uint64 // of its last unshared block
}

func (s *sender) compare(other *sender) int {
	return cmp.Or(cmp.Compare(s.next, other.next), cmp.Compare(s.index, other.index))
}

// advance moves to the next arrival; it reports whether there is one.
func (s *sender) advance() bool {
	if s.Requests > 0 && s.sent >= s.Requests {
		return false
	}
	if s.InFlight > 0 {
		if s.begun == s.InFlight || s.From.Std() >= s.until {
			return false // further ones follow answers
		}
		s.begun++
		s.sent++
		s.next = s.From.Std()
		return true
	}
	s.sent++
	if s.burst--; s.burst > 0 {
		return true
	}
	s.burst = s.Burst
	gap := float64(s.Burst) * 1e6 / float64(s.Rate.Millionths()) * float64(time.Second)
	if s.Arrivals == Poisson {
		gap *= s.rng.ExpFloat64()
	}
	if gap > float64(365*24*time.Hour) {
		return false
	}
	s.active += time.Duration(gap)
	s.next = s.active
	if s.Off > 0 {
		s.next += s.active / s.On.Std() * s.Off.Std()
	}
	s.next += s.From.Std()
	return s.next < s.until
}

// make makes the next request.
func (s *sender) make() Request {
	r := Request{
		At: s.next, Flow: s.flow, Tier: s.Tier, Class: s.Class, Tenant: s.Tenant, Role: s.Role, User: s.User, MaxOutput: int(s.MaxOutput),
		Prompt: s.Prompt.draw(s.rng), Output: s.Output.draw(s.rng),
	}
	if s.MaxOutput > 0 {
		r.Output = min(r.Output, r.MaxOutput)
	}
	if s.InFlight > 0 {
		r.loop = s
	}
	shared, group := 0, uint64(0)
	if s.Prefix.Tokens > 0 {
		r.Prompt += int(s.Prefix.Tokens)
		shared, group = int(s.Prefix.Tokens)/s.block, s.group()
	}
	r.Blocks = make([]uint64, r.Prompt/s.block)
	for i := range r.Blocks {
		if i < shared {
			r.Blocks[i] = splitmix.Mix(s.prefix + splitmix.Mix(group<<blockBits|uint64(i)))
		} else {
			s.number++
			r.Blocks[i] = splitmix.Mix(s.number)
		}
	}
	return r
}

// again returns the request that follows an ended one, if any.
func (s *sender) again(at time.Duration) (r Request, ok bool) {
	if at >= s.until || s.Requests > 0 && s.sent >= s.Requests {
		return Request{}, false
	}
	s.sent++
	r = s.make()
	r.At = at
	return r, true
}

// loops are the requests that follow others, in order of arrival.
type loops struct{ requests []Request }

// afterRejection is the time from a rejection to the next request of a flow with InFlight.
const afterRejection = time.Second

// follow adds the request that follows an ended one, if any.
func (l *loops) follow(ended *Request, at time.Duration) {
	if ended.loop == nil {
		return
	}
	if r, ok := ended.loop.again(at); ok {
		n := len(l.requests)
		for n > 0 && l.requests[n-1].At > at {
			n--
		}
		l.requests = slices.Insert(l.requests, n, r)
	}
}

// group draws the group of a request.
func (s *sender) group() uint64 {
	if s.popularity == nil {
		return s.rng.Uint64N(uint64(s.Prefix.Groups))
	}
	at := s.rng.Float64() * s.popularity[len(s.popularity)-1]
	return uint64(min(sort.SearchFloat64s(s.popularity, at), len(s.popularity)-1))
}
