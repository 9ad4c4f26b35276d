// Package quota counts tokens against quotas: the tokens that a tenant may use in a window of time. It owns the
// accounts, by key, and decides whether an account has room for another request. It is a pure state machine: no
// goroutine, lock, clock or random source, and time is an argument.
//
// # Formula
//
// An account has a sliding window of 60 buckets, each a sixtieth of the window long. A bucket begins with the first
// reservation after the previous bucket's end, and leaves one window after its last reservation. So a token counts for
// at least the window, and at most a sixtieth longer; tokens reserved at one moment count for exactly the window.
//
//	used     = Σ tokens of the buckets
//	admitted = used + min(estimate, quota) <= quota
//
// Roles may have windows of different lengths. An account keeps the longest window that it has used, and judges each
// request by the request's own window. Beyond mostBuckets buckets, neighbours are merged, and their tokens count as
// long as the last of them.
//
// An estimate above the whole quota is admitted only in an empty window; otherwise it would never be admitted.
//
// # When
//
//	Reserve  at the arrival: the estimate counts from now on, or the request is refused
//	Settle   once: with the tokens used, or with none if the request was not served
//
// A refund goes to the reservation's bucket while that is in the window. Usage above the estimate counts from the time
// when it is known.
//
// # Invariants (checkInvariants in tests)
//
//   - In any interval of a window's length, the estimates admitted sum to at most the quota, or are those of one
//     request.
//   - used = Σ tokens of the buckets, none of which is below 0; there are at most mostBuckets.
//   - A hold is settled at most once, and a refund is never larger than its reservation.
//   - There are at most as many accounts as New permits, unless SetMost has lowered the number. Beyond it, the account
//     least recently asked for is forgotten, with the tokens that it has used.
//   - One of the next requests forgets an account with an empty window, whatever the windows of other accounts.
//   - Reserve and Settle visit one account, and at most two to forget.
//
// The package knows nothing of requests, the queue, the stock, or where an estimate comes from.
package quota
