// Package frontpage writes the status document of an epp as a page for people, with an index of the debug port.
//
// The page needs no script: the server renders it, and a Refresh header has the browser ask again. [Policy] allows the
// one style sheet by its hash and nothing else, so a name that a client chose runs nothing even if an escape were
// missing.
//
// The page computes nothing: verdict, reasons and cells are those of weir status. It has at most [MaxBytes] bytes. Like
// a document it leaves out the last rows of its longest table, and says so.
package frontpage
