package leader

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// election is one replica's part in the election: it takes each reading of the Lease, and returns the Lease to write
// and the time. It is a pure state machine.
//
// Its invariants: leads changes to false only by a Lease with another holder. A Lease with another holder, unless it is
// to be relieved, is not replaced before it has been seen unchanged for its duration, in readings at most two pauses
// apart. A replica that has left takes no Lease.
type election struct {
	// Immutable.
	me       Identity
	name     string
	duration time.Duration
	pause    time.Duration // longest time between two readings, unless the apiserver does not answer

	looked time.Time             // the last reading of the Lease
	lease  *coordinationv1.Lease // as last seen; nil: there is none, or it was never read
	since  time.Time             // when this version was first seen; a vanished Lease keeps its time
	wait   time.Duration         // how long from then on it is its holder's; 0: it has no holder
	leads  bool
	left   bool
}

// saw takes the present Lease; nil: there is none.
func (e *election) saw(now time.Time, lease *coordinationv1.Lease) {
	before, blind := e.lease, now.Sub(e.looked) > 2*e.pause
	e.lease, e.looked = lease, now
	if lease == nil {
		return // the holder gets time to recreate it
	}
	if blind || before == nil || before.UID != lease.UID || before.ResourceVersion != lease.ResourceVersion {
		e.since = now // after an outage too: its holder could not renew it either
	}
	switch holder := holderOf(lease); {
	case holder == e.me.String():
		e.leads = e.leads || !e.left
		e.wait = 0
	case holder == "" || e.me.precedes(holder) || e.me.relieves(holder) && !e.left:
		e.wait = 0
		// No other replica leads: the last leader continues, and takes the Lease again.
	default:
		e.wait = durationOf(lease, e.duration)
		e.leads = false
	}
}

// proposal returns the Lease to write now, without a resourceVersion if it must be created. If there is nothing to
// write, it returns nil and the next time at which there may be, if the Lease does not change.
func (e *election) proposal(now time.Time) (write *coordinationv1.Lease, at time.Time) {
	if e.left {
		return nil, time.Time{}
	}
	if !e.leads {
		if free := e.since.Add(e.wait); now.Before(free) {
			return nil, free
		}
	}
	return e.held(now), time.Time{}
}

// held returns the Lease with this replica as its holder, renewed.
func (e *election) held(now time.Time) *coordinationv1.Lease {
	stamp := metav1.NewMicroTime(now)
	me, seconds := e.me.String(), int32(e.duration/time.Second)
	if e.lease == nil {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: e.name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &me, LeaseDurationSeconds: &seconds, AcquireTime: &stamp, RenewTime: &stamp, LeaseTransitions: new(int32),
			},
		}
	}
	l := e.lease.DeepCopy()
	if holderOf(l) != me {
		var transitions int32
		if l.Spec.LeaseTransitions != nil {
			transitions = max(0, *l.Spec.LeaseTransitions)
		}
		transitions = max(transitions, transitions+1) // stays at its largest value
		l.Spec.LeaseTransitions, l.Spec.AcquireTime = &transitions, &stamp
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &me, &seconds, &stamp
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil
	return l
}

// leave ends this replica's part. A leader still leads until another replica holds the Lease. leave returns the Lease
// to write so that another replica can take it at once; nil if this replica does not hold it.
func (e *election) leave() *coordinationv1.Lease {
	e.left = true
	if e.lease == nil || holderOf(e.lease) != e.me.String() {
		return nil
	}
	l := e.lease.DeepCopy()
	l.Spec.HolderIdentity = new(string)
	return l
}

// holderOf returns the holder of a Lease; empty: it has none.
func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// durationOf returns the time for which a Lease is its holder's, 1 s to MaxLeaseDuration; usual if the Lease has no
// valid duration.
func durationOf(l *coordinationv1.Lease, usual time.Duration) time.Duration {
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return min(time.Duration(*s)*time.Second, MaxLeaseDuration)
	}
	return usual
}
