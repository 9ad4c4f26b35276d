// Package status has the state of one epp as a document: the pool, its tiers, engines, flows and last rejections, and
// the reasons if it is unhealthy. The debug listener serves it as JSON at /debug/status; weir status prints it, and
// weir top refreshes it on the screen.
//
// The document has a version, Schema. Fields may be added without a new one; a reader ignores fields that it does not know.
//
// A document has at most MaxBytes bytes. A Query sets the rows, their order and their number. Encode leaves out the
// last rows of the longest table until the document fits, and states the number of missing rows.
//
// Rates cover a window of at most a minute up to now. They are computed from the counts in earlier documents, so an epp
// counts nothing extra between documents, and the first document after a minute has no rates; its WindowSeconds is 0.
package status
