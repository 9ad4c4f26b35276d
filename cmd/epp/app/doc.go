// Package app wires epp: it makes every part from the flags and the configuration, starts and stops the parts in order,
// and owns the metrics registry. It has no algorithm.
//
// [New] wires without starting, and closes all it has opened if it fails. [App.Run] starts the parts, and returns only
// after its goroutines have ended. [Main] is the whole program.
//
// # Start
//
// Flags and file are validated, with all problems reported at once. Then the listeners are opened (port 0 picks a free
// one), the endpoints are read, and the queue, the scheduler and the stream server are made. An invalid configuration
// ends the program, unless --on-invalid-config=defaults.
//
// # The pool
//
// [Pool] has the parts of one pool of model servers: store, board, controller, streams and metrics. A process may have
// several pools; epp has one.
//
// datastore publishes a snapshot. The wiring gives each endpoint its share of the band and passes the snapshot to the
// controller, which changes the bounds of the stock and the pool of the board in one critical section.
//
// # Change
//
// The configuration file (also a mounted ConfigMap) is followed as it changes and read again on SIGHUP, like the
// endpoints file, the certificates and the authorities of client certificates. A new text is loaded with the flags over
// it and validated as a whole, and every part is made from it before any is changed. A text that is invalid, or that
// changes a key that needs a restart, is refused with every problem named: the old configuration stays, and
// weir_config_valid is 0. [Pool.reconfigure] describes the order in which a valid one is applied.
//
// # Stop
//
// On the first SIGTERM or SIGINT readiness goes down. Queued and new requests are still served for the drain window, or
// until nothing is queued and no stream is open, but at least for minDrain: proxies need this time to notice. Then
// waiting requests are rejected (draining). Streams in flight run to their end or to --drain-timeout after the signal.
// The exit code is 0. A second signal ends the program at once, with exit code 1.
package app
