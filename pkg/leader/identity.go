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
	// Address is the pod's IP, published when the replica leads; empty: it publishes nothing.
	Address string
}

// NewIdentity returns the identity of this process.
func NewIdentity(pod, uid string) Identity {
	return Identity{Pod: pod, UID: uid, Boot: strings.ToLower(rand.Text()[:13])}
}

// String returns the identity as the holder of a Lease; no part of it has an underscore. The address is a part only if
// the replica publishes itself.
func (i Identity) String() string {
	holder := i.Pod + "_" + i.UID + "_" + i.Boot
	if i.Address != "" {
		holder += "_" + i.Address
	}
	return holder
}

// PodOfHolder returns the name of the pod of a Lease's holder; empty: no holder.
func PodOfHolder(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// precedes reports whether a holder is an earlier process of the same pod, which has ended, since a pod has one process
// at a time. Without a UID it returns false: another pod may have had the name.
func (i Identity) precedes(holder string) bool {
	parts := strings.Split(holder, "_")
	return len(parts) >= 3 && i.UID != "" && parts[0] == i.Pod && parts[1] == i.UID && parts[2] != i.Boot
}

// relieves reports whether this replica publishes itself and the holder does not, as in earlier versions: the Service
// can lead to the leader only if this replica leads.
func (i Identity) relieves(holder string) bool {
	return i.Address != "" && len(strings.Split(holder, "_")) == 3
}
