// Package quota counts tokens against quotas: a tenant may use so many tokens in a window of time. It owns the accounts,
// by key, and decides whether one has room for another request. It is a pure state machine: no goroutine, lock, clock or
// random source, and time is an argument.
//
// # Formula
//
// An account has a sliding window of 60 buckets, each a sixtieth of the window long. A bucket begins with the first
// reservation after the one before it has ended, and leaves a window's length after its last reservation. So a token counts
// for at least the window, and for at most a sixtieth more; with the tokens of one moment, exactly for the window.
//
//	used     = Σ tokens of the buckets
//	admitted = used + min(estimate, quota) <= quota
//
// Roles may have windows of different lengths. An account remembers the longest in which it has used anything, and
// judges each request by the request's own window. Where that makes more than mostBuckets buckets, neighbours become
// one, and their tokens count as long as the last of them.
//
// An estimate above the whole quota needs an empty window, since it would never be admitted otherwise.
//
// # When
//
//	Reserve  at the arrival: the estimate counts from now on, or the request has to come back later
//	Settle   once: with the tokens that it has really used, or with none, because it was not served
//
// A refund goes to the bucket of the reservation, as long as that is in the window. Usage above the estimate counts
// from the time at which it is known.
//
// # Invariants (checkInvariants in tests)
//
//   - In any interval of a window's length the estimates admitted are at most the quota, or one request's.
//   - used = Σ tokens of the buckets, none of which is below 0; there are at most mostBuckets.
//   - A hold is settled at most once, and a refund is never larger than its reservation.
//   - There are at most as many accounts as New permits, except after SetMost. With more, the one that was asked for least
//     recently is forgotten, and with it the tokens that it has used.
//   - An account whose window is empty is forgotten by one of the next requests, whatever the windows of others are.
//   - Reserve and Settle look at one account, and at two that may be forgotten.
//
// The package knows nothing of requests, the queue, the stock, or where an estimate comes from.
package quota
