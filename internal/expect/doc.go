// Package expect has what tests of running programs do again and again: they wait for a state, read a page, look up a
// metric and replace a file.
package expect
