// Package recording records the events and the verdicts of a decision machine, and repeats them. The machine is pure
// (package dispatch): the same events lead to the same verdicts. So the events alone tell everything that it did.
//
// # What is recorded
//
// The [Recorder] gets each event before the machine does, and the verdicts after it, under the lock of the machine's owner.
// A record is a byte for its kind, a time as the difference to the one before, and numbers of variable length. An arrival
// has its flow, tier, cost and deadline, its constraint on endpoints (model, subset, scores computed before its arrival),
// the name of its lane, and its ID in logs. Records are in segments, in which a text is written once and then as a number.
// Changes of the configuration are recorded whole, changes of the endpoints by their difference. Bodies and headers are
// not recorded.
//
// # What is kept
//
// The latest segments, up to the limit. A follower drops the older ones, outside the lock: it repeats each segment on a
// machine of its own first. So it always has the state at the beginning of the oldest segment that is kept, and the lock
// was never held to copy it (ADR 0037). A machine that would not do the same again is noticed at once, in production.
//
// A file (file.go) consists of the follower's state as bytes (package graph) and the segments after it. Each part has a
// checksum that covers the parts before it.
//
// # What it is used for
//
// [Format.Replay] restores the state and repeats the segments through the same packages that decided in production. It
// fails at the first verdict that differs. A checkpoint belongs to the build that wrote it: a program with other types
// refuses it, and a program that decides otherwise differs. [Format.Explain] tells the story of one request.
//
// A panic inside the machine is repeated with everything else. A panic that came from outside, such as that of a test's
// faulty placer, is not repeated, and shows as a difference.
package recording
