package leader

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// election is one replica's part in the election: it is told each sight of the Lease, and returns the Lease to write
// and when. It is a pure state machine.
//
// Its invariants: leads changes to false only by a Lease with another holder; a Lease with another holder, unless it is one
// to be relieved, is not replaced before it has been seen unchanged for its duration, by looks that are at most two pauses
// apart; a replica that has left takes no Lease.
type election struct {
	// Immutable.
	me       Identity
	name     string
	duration time.Duration
	pause    time.Duration // between two looks at most, unless the apiserver does not answer

	looked time.Time             // at the Lease, the last time
	lease  *coordinationv1.Lease // as last seen; nil: there is none, or it was never looked at
	since  time.Time             // when this version was first seen; a Lease that vanished keeps its own
	wait   time.Duration         // the time from then on for which it is its holder's; 0: no holder's
	leads  bool
	left   bool
}

// saw tells the election the present Lease; nil: there is none.
func (e *election) saw(now time.Time, lease *coordinationv1.Lease) {
	before, blind := e.lease, now.Sub(e.looked) > 2*e.pause
	e.lease, e.looked = lease, now
	if lease == nil {
		return // a holder makes it again, and is given the time for it
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
		// No other replica leads: the last leader goes on, and takes the Lease again.
	default:
		e.wait = durationOf(lease, e.duration)
		e.leads = false
	}
}

// proposal returns the Lease to write now, without a resourceVersion if it is to be created; or, if there is nothing to
// write yet, nil and when there may be without the Lease having changed.
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

// leave ends this replica's part: it leads, if it does, until another one holds the Lease. It returns the Lease to write
// so that another replica may take it at once; nil if this one does not hold it.
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

// durationOf returns the time for which a Lease is its holder's, 1 s to MaxLeaseDuration; usual if the Lease states
// none that makes sense.
func durationOf(l *coordinationv1.Lease, usual time.Duration) time.Duration {
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return min(time.Duration(*s)*time.Second, MaxLeaseDuration)
	}
	return usual
}
