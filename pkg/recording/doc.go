// Package recording writes down what a decision machine is told and what it decides, and repeats it. The machine is pure
// (package dispatch): the same events give the same verdicts. So its events are the whole truth about what it did.
//
// # What is written
//
// The [Recorder] is told each event before the machine is, and the verdicts after it, under the lock of the machine's owner.
// A record is a byte for its kind, a time as the difference to the one before, and numbers of variable length; an arrival
// has its flow, tier, cost and deadline, what it asks of endpoints (model, subset, what scorers said of it), its lane as
// it was named, and its ID in logs. Records lie in segments, in which a text is written once and then named by its number.
// Endpoints and configurations are written when they change, of the endpoints only what has changed. There are no bodies
// and no headers.
//
// # What is kept
//
// The last segments, about as much as asked for. Behind them goes the follower, outside the lock: each segment that is
// dropped is first repeated on a machine of the follower's own. So there is a checkpoint of the moment at which the oldest
// kept segment begins, at any time, and nobody had to stop the machine to take it; and a machine that would not do the same
// again is noticed at once, in production.
//
// A file (file.go) is the follower's state as bytes (package graph), and the segments after it. Each part has a checksum
// that covers the parts before it.
//
// # What it is good for
//
// [Format.Replay] restores the checkpoint and repeats the segments through the same packages that decided in production. It
// fails at the first verdict that differs. A checkpoint is for the build of the program that wrote it; another one whose
// types differ refuses it, and one that decides otherwise differs.
//
// A panic that the machine caused is repeated with the rest. One that came from outside (a test's faulty placer) is not, and
// shows as a difference.
package recording
