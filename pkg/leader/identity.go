package leader

import (
	"crypto/rand"
	"strings"
)

// Identity names one process of one pod.
type Identity struct {
	// Pod is the pod's name, and UID the pod's; UID may be empty.
	Pod, UID string
	// Boot is different for each process.
	Boot string
	// Address is the pod's IP, under which the replica publishes itself when it leads; empty: it does not.
	Address string
}

// NewIdentity returns the identity of this process.
func NewIdentity(pod, uid string) Identity {
	return Identity{Pod: pod, UID: uid, Boot: strings.ToLower(rand.Text()[:13])}
}

// String returns the identity as the holder of a Lease; no part of it has an underscore. A part for the address is there
// if the replica publishes itself.
func (i Identity) String() string {
	holder := i.Pod + "_" + i.UID + "_" + i.Boot
	if i.Address != "" {
		holder += "_" + i.Address
	}
	return holder
}

// PodOfHolder returns the name of the pod of a Lease's holder; empty: nobody holds it.
func PodOfHolder(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// precedes reports whether a holder is an earlier process of the same pod, which has ended: a pod has one process at a
// time. Without a UID it is never sure: another pod may have had the name.
func (i Identity) precedes(holder string) bool {
	parts := strings.Split(holder, "_")
	return len(parts) >= 3 && i.UID != "" && parts[0] == i.Pod && parts[1] == i.UID && parts[2] != i.Boot
}

// relieves reports whether a holder is a replica that does not publish itself, as those of earlier versions do not, and
// this one does: only if this one leads can the Service lead to the leader.
func (i Identity) relieves(holder string) bool {
	return i.Address != "" && len(strings.Split(holder, "_")) == 3
}
