// Package config is Weir's configuration document: its YAML form, its profiles, strict decoding, validation, and the
// conversion to the configurations of the packages.
//
// A document is built in layers, each of which changes only the fields that it names:
//
//	Default (the wfq profile)  ->  profile (recommended, if none is named)  ->  file  ->  flags  ->  Validate
//
// [Load] does all of it. The problems of all layers are reported together, as [Problems]: each has the path of the
// field, the value found and the allowed ones. Problems in the file carry the line.
//
// # Layers and lists
//
// Sections and maps are merged key by key. A list replaces the list of the layer below, except for tiers: each entry
// changes the given fields of a tier of the profile. A tier that the profile lacks is a problem, unless replaceTiers is
// true: then the list replaces the profile's, highest tier first.
//
// # Validation
//
// The packages validate the converted configurations ([Document.FlowcontrolConfig], [Document.ExtprocConfig],
// [Document.SchedulingConfig]) by their own fields; the sets tags map these fields to keys. Package config itself
// validates only the keys that no package knows.
//
// # Keys
//
// A key is declared in its struct field and nowhere else (ADR 0136). The field's comment has the key's meaning and
// range, and the reason of the default in a paragraph beginning with "Default:". Its tags are
//
//	default  the default, in YAML; a key without one must be given
//	sets     the fields of the packages' configurations that it sets, as part.Path (convert.go)
//	unset    the number that stands for null, or for "not given", in such a field
//	flag     the name of its command-line flag, and help what --help says of it
//	reload   "refused" or "at next start"; without it a change is applied to the running program
//	missing  the words that this build does not implement, which are problems
//	page     "first" for what a user sets, "rare" for the settings that nobody needs; without it the reference
//
// Words that stand for a package's values are in enumerations (words.go). [TestRanges] holds the packages to the ranges
// in the comments.
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
// A word that this build does not implement is a problem ("not supported yet"), never silently accepted.
//
// The comments and tags of the struct fields are the reference. This command generates docs/config.md and
// docs/settings-nobody-needs.md from them:
//
//	go test ./internal/config -run Docs -rewrite
package config
