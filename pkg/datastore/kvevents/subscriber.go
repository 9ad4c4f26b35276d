package kvevents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/zmtp"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Bounds on the cost of an endpoint.
const (
	mostMessage   = 64 << 20 // bytes
	mostFrames    = 16       // of a message
	mostTopic     = 1 << 10  // bytes
	leastMessage  = 1 << 10  // least counted bytes of a message
	bytesASecond  = 8 << 20
	burst         = time.Second      // of faster reading
	patience      = 30 * time.Second // for a handshake, and for a message that has begun
	leastWait     = time.Second      // between two connections
	mostWait      = 30 * time.Second
	leastInterval = time.Second // between two sizes
	buffered      = 4 << 10     // bytes
)

// Reason is the reason for a failed connection.
type Reason string

// Reasons.
const (
	Unreachable Reason = "unreachable" // no connection, or it has ended
	BadProtocol Reason = "protocol"    // the peer is no ZeroMQ publisher
	BadMessage  Reason = "message"     // a message that is not of KV events
)

// Reasons are all reasons.
var Reasons = []Reason{Unreachable, BadProtocol, BadMessage}

// Parts are a Subscriber's calls to its owner. Calls for one endpoint come from one goroutine, and stop before the
// endpoint is no longer followed, except for a call in progress.
type Parts struct {
	// Cleared is called when the known content of an engine's cache is no longer valid: the cache was cleared, or, with
	// gap, events are missing.
	Cleared func(id scheduling.EndpointID, gap bool)
	// Sized is called with the size of an engine's cache in tokens once it is known, and after each change by an
	// eighth, at most once a second.
	Sized func(id scheduling.EndpointID, tokens int64)
	// Blocks is called with the numbers of blocks stored and removed by a message.
	Blocks func(stored, removed int)
	// Failed is called for every connection that fails.
	Failed func(Reason)
}

// Subscriber follows the publishers of the endpoints. Its methods are safe for concurrent use.
type Subscriber struct {
	config Config
	parts  Parts
	log    logr.Logger
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	wait   time.Duration // the first one after a failure

	mu        sync.Mutex // guards the rest
	ctx       context.Context
	followed  map[scheduling.EndpointID]*publisher
	following sync.WaitGroup
}

// publisher is the publisher of a ready endpoint.
type publisher struct {
	id       scheduling.EndpointID
	endpoint string
	stop     context.CancelFunc // nil until Run
	size     atomic.Int64       // the last size passed to Sized

	// The rest belongs to its goroutine.
	contents
	toldAt time.Time // time of the last call of Sized
	paid   time.Time // end of the time paid for by bytes read
	warned bool
	fails  int // in a row
}

// New returns a subscriber that follows nothing.
func New(config Config, parts Parts, log logr.Logger) *Subscriber {
	dialer := net.Dialer{Timeout: patience}
	return &Subscriber{
		config: config, parts: parts, log: log, dial: dialer.DialContext, wait: leastWait,
		followed: map[scheduling.EndpointID]*publisher{},
	}
}

// Follow follows the publishers of a snapshot's ready endpoints, and no others. An endpoint that returns or has a new
// address counts as new.
func (s *Subscriber) Follow(snapshot *scheduling.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[scheduling.EndpointID]*publisher, snapshot.Len())
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		if !e.Ready {
			continue
		}
		p := s.followed[e.ID]
		if p == nil || p.endpoint != e.Address {
			p = &publisher{id: e.ID, endpoint: e.Address}
			s.begin(p)
		}
		next[e.ID] = p
	}
	for id, p := range s.followed {
		if next[id] != p && p.stop != nil {
			p.stop()
		}
	}
	s.followed = next
}

// Size returns the size of an endpoint's cache in tokens; 0 if it is not known.
func (s *Subscriber) Size(id scheduling.EndpointID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.followed[id]; p != nil {
		return p.size.Load()
	}
	return 0
}

// begin begins to follow a publisher, if Run has been called. The caller holds mu.
func (s *Subscriber) begin(p *publisher) {
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(s.ctx)
	s.following.Go(func() { s.follow(ctx, p) })
}

// Run follows until ctx is done and the last connection is closed.
func (s *Subscriber) Run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	for _, p := range s.followed {
		s.begin(p)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock() // no more begin
	defer s.mu.Unlock()
	s.following.Wait()
}

// follow reads a publisher's messages until ctx is done, over one connection after the other.
func (s *Subscriber) follow(ctx context.Context, p *publisher) {
	address, err := s.config.addressOf(p.endpoint)
	if err != nil {
		s.log.Info("WARNING: KV events of an endpoint are not followed", "endpoint", p.endpoint, "reason", err.Error())
		return
	}
	for {
		reason, err := s.connect(ctx, p, address)
		if ctx.Err() != nil {
			return
		}
		s.parts.Failed(reason)
		if p.fails++; !p.warned {
			p.warned = true
			s.log.Info("WARNING: KV events of an endpoint cannot be read; Weir tries again", "endpoint", p.endpoint, "publisher", address,
				"reason", string(reason), "error", err.Error())
		}
		if !pause(ctx, p.backoff(s.wait)) {
			return
		}
	}
}

// backoff returns the wait after a failure: doubled after each consecutive one, ± a quarter.
func (p *publisher) backoff(least time.Duration) time.Duration {
	wait := min(least<<min(p.fails-1, 16), mostWait)
	return wait*3/4 + rand.N(wait/2+1)
}

// pause waits; it reports false if ctx is done before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// connect reads messages over one connection until it fails.
func (s *Subscriber) connect(ctx context.Context, p *publisher, address string) (Reason, error) {
	conn, err := s.dial(ctx, "tcp", address)
	if err != nil {
		return Unreachable, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	r := bufio.NewReaderSize(conn, buffered)
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Unreachable, err
	}
	if err := zmtp.Shake(conn, r, zmtp.Sub, zmtp.Pub); err != nil {
		return BadProtocol, err
	}
	if _, err := conn.Write(zmtp.Append(nil, zmtp.Subscription(s.config.Topic))); err != nil {
		return Unreachable, err
	}
	for {
		if err := conn.SetDeadline(time.Time{}); err != nil {
			return Unreachable, err
		}
		if _, err := r.Peek(1); err != nil {
			return Unreachable, err
		}
		began := time.Now()
		if err := conn.SetDeadline(began.Add(patience)); err != nil {
			return Unreachable, err
		}
		bytes, err := s.message(p, r, began)
		if err != nil {
			var broken net.Error
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) {
				return Unreachable, err
			}
			return BadMessage, err
		}
		if !pause(ctx, p.pay(began, bytes)) {
			return Unreachable, ctx.Err()
		}
	}
}

// pay counts the bytes of a message, and returns the wait for the next one.
func (p *publisher) pay(now time.Time, bytes uint64) time.Duration {
	if earliest := now.Add(-burst); p.paid.Before(earliest) {
		p.paid = earliest
	}
	p.paid = p.paid.Add(time.Second * time.Duration(max(bytes, leastMessage)) / bytesASecond)
	return max(0, p.paid.Sub(now))
}

// message reads one message, passes its content to the owner, and returns its length.
func (s *Subscriber) message(p *publisher, r *bufio.Reader, now time.Time) (bytes uint64, err error) {
	var gap bool
	var sum totals
	for i := 0; ; i++ {
		f, err := zmtp.Next(r)
		if err != nil {
			return 0, err
		}
		if bytes += f.Size; f.Size > mostMessage || bytes > mostMessage {
			return 0, fmt.Errorf("kvevents: a message has more than %d bytes", mostMessage)
		}
		body := items{r, f.Size}
		switch {
		case f.Command && i == 0:
			return bytes, body.discard(f.Size) // such as a ping, which ZMTP 3.0 does not have
		case f.Command || i >= mostFrames || i < 2 && !f.More:
			return 0, errors.New("kvevents: a message must be a topic, a sequence number and a batch")
		case i == 0 && f.Size > mostTopic:
			return 0, fmt.Errorf("kvevents: a topic has more than %d bytes", mostTopic)
		case i == 1:
			if f.Size != 8 {
				return 0, fmt.Errorf("kvevents: a sequence number has %d bytes, must have 8", f.Size)
			}
			n, err := body.bytes(8)
			if err != nil {
				return 0, err
			}
			gap = p.sequence(n)
		case i == 2:
			if sum, err = p.batch(r, f.Size); err != nil {
				p.clear()
				s.parts.Cleared(p.id, true) // the events that could not be read are missing
				return 0, err
			}
		default:
			if err := body.discard(f.Size); err != nil {
				return 0, err
			}
		}
		if !f.More {
			break
		}
	}
	if p.fails, p.warned = 0, false; gap || sum.cleared {
		s.parts.Cleared(p.id, !sum.cleared)
	}
	s.parts.Blocks(sum.stored, sum.removed)
	s.tell(p, now)
	return bytes, nil
}

// tell passes a new size to the owner.
func (s *Subscriber) tell(p *publisher, now time.Time) {
	size, told := p.contents.size(), p.size.Load()
	if change := max(size-told, told-size); size == 0 || 8*change <= told || now.Sub(p.toldAt) < leastInterval {
		return
	}
	p.toldAt = now
	p.size.Store(size)
	s.parts.Sized(p.id, size)
}
