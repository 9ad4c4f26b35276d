// Package config is Weir's configuration document: its YAML form, its profiles, strict decoding, validation, and the
// conversion to the configurations of the packages.
//
// A document is built in layers, each of which changes only the fields that it names:
//
//	Default (the wfq profile)  ->  profile (recommended, if none is named)  ->  file  ->  flags  ->  Validate
//
// [Load] does all of it. The problems of all layers are reported together, as [Problems]: each has the path of the
// field, the value found and what is allowed there. Problems in the file carry the line.
//
// # Layers and lists
//
// Sections and maps are merged key by key. A list replaces the list of the layer below, except for tiers: the
// list changes tiers of the profile, and only in the fields that it gives. A tier that the profile lacks is a problem,
// unless replaceTiers is true: then the list is the whole list, highest first.
//
// # Validation
//
// The packages validate what the document is converted to ([Document.FlowcontrolConfig], [Document.ExtprocConfig],
// [Document.SchedulingConfig]), in terms of their own fields; keys.go maps these fields to keys. Package config itself
// validates only what no package knows.
//
// # Spelling
//
// Keys are camelCase. The two sections of the original queueing proposal and their keys may also be spelled in
// snake_case (fair_request_queue, request_queue_controller), but not in both ways at once. Durations are Go durations
// with a unit ("30s", "1m30s"). Decimals have at most six digits after the point and are kept exactly ([Decimal]): no
// float decides an order or a bound.
//
// # Not yet
//
// A field that this build does not implement is never silently accepted: any value but the wfq default is a problem
// ("not supported yet"). unsupported.go has the only list of such fields.
//
// The comments of the struct fields are the reference. This command generates docs/config.md from them:
//
//	go test ./internal/config -run Docs -rewrite
package config
