// Package invalid says what is wrong with a configuration.
//
// A package that is configured checks its own Config and reports every [Problem] at once: the Go field, the value and
// what is wanted. It knows no file, no key and no flag. Whoever filled the Config in from a file or from flags knows
// where each field came from, and shows the operator the key in place of the field ([Path.Pattern], [Problem.Want]).
// So each limit stands in one place, beside the code that relies on it.
//
// The package imports the standard library only and keeps nothing, so the pure core may use it.
package invalid
