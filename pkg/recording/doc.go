// Package recording records the events and the verdicts of a decision machine, and replays them. The machine is pure
// (package dispatch): the same events lead to the same verdicts, so the events alone reproduce all that it did.
//
// # What is recorded
//
// The [Recorder] gets each event before the machine does, and the verdicts after it, under the lock of the machine's
// owner. A record consists of a byte for its kind, the time since the record before it, and numbers of variable length.
// An arrival has its flow, tier, cost and deadline, its constraint on endpoints (model, subset, scores computed before
// its arrival), the name of its lane, and its ID in logs. Records are grouped in segments; a segment has each text once
// and refers to it by number. A changed configuration is recorded whole, a change of endpoints as the difference.
// Bodies and headers are not recorded.
//
// # What is kept
//
// The latest segments are kept, up to the limit. A follower drops older segments, outside the lock, after replaying
// each on a machine of its own. So it always has the state at the beginning of the oldest segment. The lock is held only
// once, to copy the machine's memory when the recording begins (ADR 0037, 0216). The follower also notices at once, in
// production, a machine that would not do the same again.
//
// A file (file.go) consists of the follower's state as bytes (package graph) and the segments after it. Each part has a
// checksum that covers the parts before it.
//
// # What it is used for
//
// [Format.Replay] restores the state and repeats the segments through the same packages that decided in production. It
// fails at the first verdict that differs. A checkpoint belongs to the build that wrote it: a program with other types
// refuses it, and the replay of a program with other decisions fails at the first difference. [Format.Explain] tells
// the story of one request.
//
// The replay repeats a panic inside the machine. It does not repeat a panic from outside, such as that of a test's
// faulty placer, which shows as a difference.
package recording
