// Package leader elects, through Leases of Kubernetes, one replica of Weir as the leader, and tells the replicas of a
// pool each other's requests in flight. (A Lease, with a capital, is the object of Kubernetes; a lease is a request's.)
//
// # Election
//
// All replicas of a pool share one Lease. Its holder is the leader: the only replica that is ready and gets requests. A
// follower still serves requests that reach it. An [Elector] runs the election for one replica:
//
//   - The holder renews the Lease every retry period. A failed renewal changes nothing: a leader stays the leader, even
//     without the apiserver, until it reads another holder in the Lease. (client-go's elector ends the leadership at a
//     deadline, and its users exit; here an apiserver outage would then stop all traffic.)
//   - A follower takes the Lease when the Lease has not changed for its duration. The follower measures by its own
//     clock, from its first sight of the current version (resourceVersion); times in the object are for people. So
//     clocks may differ by any amount. After more than two retry periods without reading the Lease, a follower starts
//     its count again: the holder could not renew the Lease either, so an apiserver outage does not move the
//     leadership.
//   - A Lease without a holder is taken at once, and so is a Lease held by an earlier process of the same pod. The
//     holder recreates a deleted Lease at once; other replicas recreate it only after its duration.
//   - Every write names the version that it replaces, so of two writers one wins and the other reads again.
//   - A stopping replica gives up the Lease at once and leaves the election, but leads until it reads another holder.
//   - If the holder does not publish itself (earlier versions do not), a replica that does takes the Lease at once.
//
// So after SIGKILL of the leader another replica leads within the Lease's duration plus one retry period. Two replicas
// may both lead while one of them cannot reach the apiserver: then both serve, and count each other's work.
//
// # Publication
//
// The EndpointSlices of a Service without a selector name its targets. One of them names the leader; the package does
// not create it. A [Publication] replaces its entries with this replica's own, when the replica begins to lead and
// whenever it finds other entries. So a new leader replaces the old one in one write. A stopping leader writes nothing
// more, except that it removes its own entry at the end if no replica has replaced it.
//
// # The requests in flight of others
//
// [Replicas] keeps a Lease for each replica, elected or alone, with a [Record]: the process's requests in flight by
// endpoint. The replica writes it every retry period, at once when the process begins to drain, and once more at its
// end. While a process drains, it and its readers write and read four times as often, so each knows all of the other's
// dispatches except those in the last half of a retry period. Other replicas count the records as foreign stock. Of a
// record without a newer one,
//
//	⌈ total × (60 − ⌊60 × age / window⌋) / 60 ⌉
//
// is counted: the total and each endpoint's part fall to 0 over the takeover window, in 60 equal steps. The reader
// measures the age by its own clock, from its first sight of the record. For a record older than the reader, the age is
// the difference of two times that the apiserver wrote: one in that Lease and one in the reader's own. So a new process
// counts the requests of a process killed a moment ago, but not of one that ended yesterday.
//
// Each process has a boot ID. Records of different boots add up, even under one pod's name: a restarted container
// counts the requests that its earlier processes left at the engines. Its own record includes and replaces theirs.
//
// A Lease that has not changed for a long time (forgetAfter and five windows) is deleted by the next replica that sees
// it. The Leases have no owner: the garbage collector would remove a killed pod's record before its successor could
// read it.
//
// # Bounds
//
// Leases can be written by strangers. At most maxReplicas Leases are read; a record has at most MaxRecord bytes and
// counts up to MaxInFlight. An invalid record is logged once and does not replace an earlier one.
package leader
