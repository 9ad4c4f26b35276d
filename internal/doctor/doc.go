// Package doctor finds known mistakes in an Envoy's configuration, compared with Weir's, without sending a request.
//
// # Input
//
// [Read] takes the text of a configuration: a bootstrap as in config/envoy, the page /config_dump?include_eds of an
// Envoy's admin interface, or the output of `egctl x translate` with one configuration for each gateway. It returns one
// [Envoy] for each. The text is decoded to a tree, and each listener, cluster, route configuration and list of
// endpoints to its message of go-control-plane, so that defaults, both spellings of a key and all forms of numbers have
// the same meaning as in Envoy. An extension of an unknown type, or an unreadable one, becomes an empty extension and a
// [Note]: a gateway has filters of its own, and the rest is still checked.
//
// [Weir] is the other side: Weir's effective configuration, and its flags for TLS and endpoints. Missing facts are not
// guessed: the checks that need them do not run, and a note says so.
//
// # Rules
//
// A check is a pure function from both to findings: it opens no file and uses no clock or network. It reads each
// ext_proc filter with each route's overrides: those of the route configuration, virtual host, route and weighted
// cluster (use.go). A finding has the stable identifier of its check, the place as a [Path], the value found, and the
// correct line. A finding is reported only if the harm follows from the configuration; the shipped files have no
// findings (TestShippedFiles).
//
// [Checks] is the table of checks. docs/doctor.md has the same table (TestPage), and for each check the test that shows
// the harm on a real Envoy. A new check needs such a test, one with a finding, and one with the nearest correct
// configuration.
//
// [Kubernetes] is the same for a cluster: it asks the apiserver, and reports findings in the same form.
package doctor
