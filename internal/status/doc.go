// Package status is the state of one epp as a document: the pool, its tiers, its engines, its flows and its last
// rejections, with the reasons for which it is not healthy. The debug listener serves it as JSON at /debug/status; weir
// status prints it, and weir top shows it again and again.
//
// The document has a version, Schema. Fields may be added without a new one; a reader ignores fields that it does not know.
//
// A document has at most MaxBytes bytes. A Query says which rows are wanted, in which order and how many; Encode leaves
// out the last rows of the longest table until the document fits, and says how many are missing.
//
// Rates are of a window of at most a minute that ends now. An epp keeps the counts of earlier documents for them and
// counts nothing while nobody looks, so the first document after a minute has no rates; WindowSeconds is 0 then.
package status
