// Package app is the wiring of the epp: it makes every part from the flags and the configuration, starts and stops
// them in order, and owns the metrics registry. It holds no algorithm.
//
// [New] wires without starting and rolls back what it had opened when it fails; [App.Run] starts, and returns only
// after its goroutines have. [Main] is the whole program.
//
// # Start
//
// Flags and file are validated, all problems at once; then the listeners are opened (port 0 picks a free one), the
// endpoints are read, and queue, scheduler and stream server are made. An invalid configuration ends the program,
// unless --on-invalid-config=defaults.
//
// # The pool
//
// datastore publishes a snapshot; the wiring gives each endpoint its share of the hysteresis band and hands it to the
// controller, which changes the stock's bounds and the board's pool in one critical section.
//
// # Change
//
// The configuration file is followed as it changes (a mounted ConfigMap too), and read again on SIGHUP, like the endpoints
// file and the certificate. A new text is loaded, with the flags over
// it, and validated whole; every part is made from it before any is changed. One that is invalid, or that changes what
// cannot change at run time, is refused with every problem named: the old configuration stays, weir_config_valid is 0.
// [pool.reconfigure] has the order in which a valid one comes into use.
//
// # Stop
//
// On the first SIGTERM or SIGINT readiness goes down. Queued and new requests are still served for the drain window,
// or until nothing is queued and no stream is open, but for minDrain at least, which is what proxies need to see that
// readiness is down; then what waits is rejected (draining). Streams in flight run to
// their end, or to --drain-timeout, counted from the signal. The exit code is 0. A second signal ends at once, with 1.
package app
