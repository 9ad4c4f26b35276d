// Package leader elects, through Leases of Kubernetes, one replica of Weir as the leader, and tells the replicas of a
// pool each other's requests in flight. (A Lease, with a capital, is the object of Kubernetes; a lease is a request's.)
//
// # Election
//
// All replicas of a pool share one Lease. Its holder is the leader: the one that is ready and gets the requests. A
// follower that is reached all the same serves. An [Elector] keeps the election for one replica:
//
//   - The holder renews the Lease every retry period. Failing to renew changes nothing: a leader stays the leader, with the
//     apiserver gone too, until it reads another holder in the Lease. (client-go's elector ends the leadership at a
//     deadline and its users exit; here that would stop all traffic because of an outage that concerns none of it.)
//   - A follower takes the Lease when it has not changed for its duration, by the follower's own clock: it counts from the
//     moment when it first saw the version (resourceVersion) that it still sees. Times in the object are for people. So
//     clocks may differ by any amount. After more than two retry periods without a look it begins to count anew: the
//     holder could not renew the Lease either, so an outage of the apiserver does not move the leadership.
//   - A Lease without a holder is taken at once, and so is one that an earlier process of the same pod holds. One that was
//     deleted is made again by its holder at once, by others only when its duration has passed.
//   - Every write names the version that it replaces, so that of two writers one wins and the other one reads again.
//   - A replica that stops gives the Lease up at once, takes no part from then on, and leads until it reads another holder.
//   - A Lease of a replica that does not publish itself, as earlier versions do not, is taken at once by one that does.
//
// So after SIGKILL of the leader another replica leads within the Lease's duration and one retry period. Two replicas may
// both think that they lead while one of them cannot reach the apiserver: then both serve, as any follower does, and
// count each other's work.
//
// # Publication
//
// The EndpointSlices of a Service without a selector name its targets. One of them, which the package does not create,
// names the leader: a [Publication] replaces its entries by one, this replica's own, when the replica begins to lead
// and whenever it finds other entries. So the leader's successor takes its place in one write. A leader that stops
// writes nothing more; if no replica takes its place, it removes its own entry at the end.
//
// # The requests in flight of others
//
// [Replicas] keeps a Lease for each replica, elected or alone, with a [Record]: the process's requests in flight by
// endpoint. It is written every retry period, at once when the process begins to drain, and once more at its end. While
// a process drains, it and its readers write and read four times as often: each knows all dispatches of the other,
// except those in the last half of a retry period. Others read the records and count them as foreign stock. Of a record
// that no newer one follows,
//
//	⌈ total × (60 − ⌊60 × age / window⌋) / 60 ⌉
//
// is counted: it falls to 0 over the takeover window, in 60 equal steps, and each endpoint's part with it. Age is
// measured by the reader's clock, from the moment when it first saw the record. Of a record that is there when the
// reader starts, the age is the difference of two times that the apiserver wrote: in that Lease and in the reader's
// own. So a new process counts the requests of one that was killed a moment ago, and not those of one that ended
// yesterday.
//
// Each process has a boot ID. Records of different boots add up, also under one pod's name: a restarted container
// counts the requests that its earlier processes left at the engines, and hands their records on in its own, which
// replaces them.
//
// A Lease that has not changed for a long time (forgetAfter and five windows) is deleted by the next replica that sees
// it. The Leases have no owner: the garbage collector would remove a killed pod's record before its successor could
// read it.
//
// # Bounds
//
// Leases can be written by strangers. At most maxReplicas are read; a record is at most MaxRecord bytes, with counts up to
// MaxInFlight; one that is not valid counts as no newer record and is logged once.
package leader
