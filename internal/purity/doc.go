// Package purity checks whether a Go package is pure enough for the core: no goroutine, channel, clock, random source
// of its own, access to the outside world, or package-level state, so that the same calls always give the same results.
// Its test applies the check to the core packages. The check repeats some of the linters' on purpose, since a linter
// exclusion is easily added. It also finds circular uses between the files of a package.
package purity
