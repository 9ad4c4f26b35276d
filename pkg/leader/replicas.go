package leader

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolLabel is the label of the replicas' Leases; its value names the pool.
const PoolLabel = "weir.dev/pool"

// maxReplicas bounds the replicas' Leases that are read.
const maxReplicas = 64

// endTimeout bounds the time of the last record of a process.
const endTimeout = 2 * time.Second

// Part is a replica's interface to its own process.
type Part struct {
	// InFlight returns this process's requests in flight now.
	InFlight func() InFlight
	// Changed is called when Stock may have changed.
	Changed func()
	// Failed is called for each failed request, for a metric.
	Failed func()
}

// Replicas keeps this replica's Lease, and reads the others'.
type Replicas struct {
	config Config
	me     Identity
	name   string // of the own Lease
	pool   string
	leases API
	part   Part
	log    logr.Logger

	drain chan struct{} // of capacity 1
	look  chan struct{} // of capacity 1

	mu      sync.Mutex
	foreign *foreign

	// Owned by Run.
	own      *coordinationv1.Lease // as last seen; nil: unknown or missing
	offset   time.Duration         // from this clock to the apiserver's; only once stamped
	stamped  bool
	synced   bool
	draining bool
	silent   bool // the last record has nothing in flight
	written  time.Time
	swept    time.Time // when Leases were last deleted
	failures struct{ list, write, remove failure }
	crowded  bool // there are more Leases than are read
}

// NewReplicas returns the records of one replica of a pool. pool is a valid value of a label (PoolLabelOf).
func NewReplicas(config Config, me Identity, pool string, leases API, part Part, log logr.Logger) *Replicas {
	r := &Replicas{
		config: config, me: me, name: ReplicaLease(me.Pod), pool: pool, leases: leases, part: part, log: log,
		drain: make(chan struct{}, 1), look: make(chan struct{}, 1), foreign: newForeign(config.TakeoverWindow, me.Boot),
	}
	kind := func(begins string) failure {
		return failure{log: log, failed: part.Failed, begins: begins, ends: "no longer: " + begins}
	}
	r.failures.list = kind("the records of other replicas cannot be read: their stock falls to 0")
	r.failures.write = kind("the record of this replica cannot be written: others do not know of its work")
	r.failures.remove = kind("Leases of replicas that are gone cannot be deleted")
	return r
}

// Stock returns other processes' requests in flight at each of the endpoints, or nil if there are none; endpoints is
// then not called. It is safe for concurrent use.
func (r *Replicas) Stock(now time.Time, endpoints func() []Endpoint) []Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign.next(now).IsZero() {
		return nil
	}
	return r.foreign.stock(now, endpoints())
}

// Drain marks later records as those of a stopping replica. It returns at once.
func (r *Replicas) Drain() {
	select {
	case r.drain <- struct{}{}:
	default:
	}
}

// Look makes Run read the records at once. It returns immediately.
func (r *Replicas) Look() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

// overlapLooks is the factor by which records are written and read more often while a stopping replica and another may
// both dispatch. So the dispatches that one does not know of the other are well below those of a retry period.
const overlapLooks = 4

// pause returns the time until the next round.
func (r *Replicas) pause() time.Duration {
	pause := r.config.RetryPeriod
	r.mu.Lock()
	overlap := r.draining || r.foreign.drains(time.Now(), 2*r.config.RetryPeriod)
	r.mu.Unlock()
	if overlap {
		pause /= overlapLooks
	}
	return pause - rand.N(pause/5+1) // as in Elector
}

// Run reads and writes records until ctx is done, then writes a last one, and returns nil. synced is called once, after
// the other replicas' records have been read and one of this replica is written.
func (r *Replicas) Run(ctx context.Context, synced func()) error {
	round, step := time.NewTimer(0), time.NewTimer(0)
	defer round.Stop()
	defer step.Stop()
	step.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(endTimeout, r.config.callTimeout()))
			defer cancel()
			if r.synced {
				_ = r.write(last) // there is no later attempt
			}
			return nil
		case <-r.drain:
			r.draining, r.written = true, time.Time{}
			round.Reset(0)
			continue
		case <-r.look:
			round.Reset(0)
			continue
		case <-round.C:
			r.round(ctx, synced)
			round.Reset(r.pause())
		case <-step.C:
		}
		r.part.Changed()
		now := time.Now()
		r.mu.Lock()
		at := r.foreign.next(now)
		r.mu.Unlock()
		if at.IsZero() {
			step.Stop()
		} else {
			step.Reset(at.Sub(now))
		}
	}
}

// round reads all records and writes this replica's own.
func (r *Replicas) round(ctx context.Context, synced func()) {
	leases, err := r.list(ctx)
	r.note(ctx, &r.failures.list, err)
	if err != nil && !r.synced {
		return // its own Lease may have a record that must not be lost
	}
	if !r.synced {
		// The leases of earlier processes are handed on before their record is replaced. Their age is known only after
		// this record is written.
		r.saw(leases, func(*coordinationv1.Lease) time.Duration { return 0 })
	}
	writing := r.keep(ctx)
	r.note(ctx, &r.failures.write, writing)
	if err != nil {
		return
	}
	first := !r.synced && writing == nil
	if first {
		r.mu.Lock()
		r.foreign = newForeign(r.config.TakeoverWindow, r.me.Boot) // once more, with their ages
		r.mu.Unlock()
	}
	r.saw(leases, r.age)
	if first {
		r.synced = true
		r.part.Changed() // before the records are relied on
		synced()
	}
	r.forget(ctx)
}

// list returns the Leases of the pool's replicas, and remembers this replica's own.
func (r *Replicas) list(ctx context.Context) ([]coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.callTimeout())
	defer cancel()
	leases, more, err := r.leases.List(ctx, PoolLabel+"="+r.pool, maxReplicas)
	if err != nil {
		return nil, err
	}
	if more && !r.crowded {
		r.log.Info("WARNING: the pool has more Leases of replicas than Weir reads: the stock of the others is unknown",
			"label", PoolLabel+"="+r.pool, "read", maxReplicas)
	}
	r.crowded, r.own = more, nil
	for i := range leases {
		if leases[i].Name == r.name {
			r.own = &leases[i]
			return leases, nil
		}
	}
	own, err := r.leases.Get(ctx, r.name) // its label may have been removed
	switch {
	case apierrors.IsNotFound(err):
		return leases, nil
	case err != nil:
		return nil, err
	}
	r.own = own
	return append(leases, *own), nil
}

// saw takes in the content of the Leases.
func (r *Replicas) saw(leases []coordinationv1.Lease, age func(*coordinationv1.Lease) time.Duration) {
	r.mu.Lock()
	bad := r.foreign.saw(time.Now(), leases, age)
	r.mu.Unlock()
	for _, b := range bad {
		r.log.Info("WARNING: a replica's record is not valid and does not count",
			"lease", b.lease, "annotation", Annotation, "problem", b.err.Error())
	}
}

// keep writes this replica's record, unless it would repeat that nothing is in flight.
func (r *Replicas) keep(ctx context.Context) error {
	now := time.Now()
	nothing := r.part.InFlight().Total == 0 && len(r.earlier(now)) == 0
	if nothing && r.silent && !r.draining && r.own != nil && now.Sub(r.written) < r.config.LeaseDuration {
		return nil
	}
	err := r.write(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		if _, err := r.list(ctx); err != nil { // another writer has changed or deleted it
			return err
		}
		err = r.write(ctx)
	}
	if r.silent = nothing && err == nil; err == nil {
		r.written = now
	}
	return err
}

func (r *Replicas) earlier(now time.Time) []Earlier {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.foreign.earlier(now, r.name)
}

// write writes this replica's Lease with the present record.
func (r *Replicas) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.callTimeout())
	defer cancel()
	now := time.Now()
	record := Record{
		Boot: r.me.Boot, Time: now.UTC(), Draining: r.draining, InFlight: r.part.InFlight(), Earlier: r.earlier(now),
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	if r.own != nil {
		l = r.own.DeepCopy()
	}
	set(&l.Labels, PoolLabel, r.pool)
	set(&l.Annotations, Annotation, record.encode())
	stamp, me, seconds := metav1.NewMicroTime(now), r.me.String(), int32(r.config.LeaseDuration/time.Second)
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &me, LeaseDurationSeconds: &seconds, RenewTime: &stamp}
	put := r.leases.Update
	if r.own == nil {
		put = r.leases.Create
	}
	written, err := put(ctx, l)
	if err != nil {
		return err
	}
	r.own = written
	if at := stampOf(written); !at.IsZero() {
		r.offset, r.stamped = time.Until(at), true
	}
	return nil
}

func set(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// age returns the time since a Lease was written, by the apiserver's clock; 0 if that is unknown.
func (r *Replicas) age(l *coordinationv1.Lease) time.Duration {
	at := stampOf(l)
	if at.IsZero() || !r.stamped {
		return 0
	}
	return time.Now().Add(r.offset).Sub(at)
}

// stampOf returns when the apiserver last recorded a change of a Lease, to the second.
func stampOf(l *coordinationv1.Lease) time.Time {
	var last time.Time
	for _, f := range l.ManagedFields {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// forget deletes the Leases of departed replicas.
func (r *Replicas) forget(ctx context.Context) {
	now := time.Now()
	if now.Sub(r.swept) < r.config.LeaseDuration {
		return
	}
	r.mu.Lock()
	gone := r.foreign.forgotten(now, r.name)
	r.mu.Unlock()
	var failed error
	for _, id := range gone {
		r.swept = now
		ctx, cancel := context.WithTimeout(ctx, r.config.callTimeout())
		err := r.leases.Delete(ctx, &coordinationv1.Lease{ObjectMeta: id})
		cancel()
		if err == nil {
			r.log.Info("deleted the Lease of a vanished replica", "lease", id.Name)
		} else if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = err
			break
		}
	}
	r.note(ctx, &r.failures.remove, failed)
}

// note notes the result of a request, unless ctx has ended it.
func (r *Replicas) note(ctx context.Context, f *failure, err error) {
	if ctx.Err() == nil {
		f.note(err)
	}
}
