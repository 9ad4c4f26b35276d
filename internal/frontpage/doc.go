// Package frontpage renders the status document of an epp as an HTML page, with an index of the debug port.
//
// The page needs no script: the server renders it, and a Refresh header makes the browser reload it. [Policy] allows
// only the one style sheet, by its hash, so a name chosen by a client cannot run code even if an escape were missing.
//
// The page computes nothing: verdict, reasons and cells are those of weir status. A page has at most [MaxBytes] bytes;
// like the document it leaves out the last rows of its longest table, and says so.
package frontpage
