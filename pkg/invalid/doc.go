// Package invalid describes the problems of a configuration.
//
// A package that is configured checks its own Config and reports every [Problem] at once: the Go field, its value and
// the permitted values. It knows no file, key or flag. The caller that filled in the Config from a file or from flags
// knows the source of each field, and shows the operator the key instead of the field ([Path.Pattern], [Problem.Want]).
// So each limit is in one place, next to the code that relies on it.
//
// The package imports only the standard library and has no state, so the pure core may use it.
package invalid
