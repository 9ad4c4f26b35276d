// Package doctor finds the known traps in an Envoy's configuration beside Weir's, without sending a request.
//
// # Input
//
// [Read] takes the text of a configuration: a bootstrap as in config/envoy, the page /config_dump?include_eds of an Envoy's
// admin interface, or the output of `egctl x translate` with one configuration for each gateway. It returns one [Envoy] for
// each. The text is decoded to a tree, and each listener, cluster, route configuration and list of endpoints in it to the
// message of go-control-plane, so that defaults, both spellings of a key and numbers of any form mean what they mean to
// Envoy. An extension of an unknown type, or one that cannot be read, becomes an empty one and a [Note]: a gateway has filters
// of its own, and they are no reason to say nothing of the rest.
//
// [Weir] is the other side: the effective configuration of Weir, and what its flags say of TLS and endpoints. Facts that
// nobody gave are not guessed: the checks that need them do not run, and a note says so.
//
// # Rules
//
// A check is a pure function from both to findings: it opens no file, knows no time and asks nobody. It reads each ext_proc
// filter as each route has it, with the overrides of route configuration, virtual host, route and weighted cluster (use.go). A
// finding names the check by its stable identifier, the place as a [Path], the value that is there, and the line that should
// be there. It is only reported where the harm follows from the configuration; no shipped file has one (TestShippedFiles).
//
// [Checks] is the table of them. docs/doctor.md has it too (TestPage), with the test of each that shows the harm on a real
// Envoy. A check needs such a test, one that finds it and one with the nearest correct configuration.
//
// [Kubernetes] is the same for a cluster: it asks the apiserver, and reports findings in the same form.
package doctor
