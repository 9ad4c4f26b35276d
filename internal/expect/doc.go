// Package expect has the steps that tests of running programs share: they wait for a state, send a request, read a page,
// look up a metric and replace a file.
package expect
