// Package invalid describes the problems of a configuration.
//
// A package checks its own Config and reports every [Problem] at once: the Go field, its value and the permitted
// values. It knows no file, key or flag. The caller knows the source of each field and shows the operator its key or
// flag instead ([Path.Pattern], [Problem.Want]). So each limit is in one place, next to the code that relies on it.
//
// The package imports only the standard library and has no state, so the pure core may use it.
package invalid
