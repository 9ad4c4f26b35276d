// Package config is Weir's one configuration document: its YAML form, its profiles, its strict decoding, its validation,
// and its conversion to the configurations of the packages.
//
// A document is made in layers, each of which changes only the fields that it names:
//
//	Default (the wfq profile)  ->  profile  ->  file  ->  flags  ->  Validate
//
// [Load] does all of it. Every problem of every layer is reported at once, as [Problems], each with the path of the
// field, the value that was found and what is allowed there; problems of the file carry its line.
//
// # Layers and lists
//
// A section or a map is merged key by key. A list replaces the list of the layer below, with one exception: tiers.
// A list of tiers that names only tiers of the profile changes them in place, and only in the fields that it names;
// a list that names any other tier is the whole list, highest first.
//
// # Validation
//
// The packages check what the document becomes for them ([Document.FlowcontrolConfig], [Document.ExtprocConfig],
// [Document.SchedulingConfig]), in the names of their own fields. keys.go has the key of each field. Only what no package
// has is checked here.
//
// # Spelling
//
// Keys are camelCase. The snake_case spelling of the two sections of the original queueing proposal
// (fair_request_queue, request_queue_controller) and of their keys is accepted too; one of the two at a time.
// Durations are Go durations with a unit ("30s", "1m30s"), decimals have at most six digits after the point and are
// kept exactly ([Decimal]): no float decides an order or a bound.
//
// # Not yet
//
// A field that this build does not act upon is never silently accepted: a value other than the wfq default is a
// problem ("not supported yet"). The list of such fields is in unsupported.go, and nowhere else.
//
// The comments of the struct fields are the reference: docs/config.md is generated from them by
//
//	go test ./internal/config -run Docs -rewrite
package config
