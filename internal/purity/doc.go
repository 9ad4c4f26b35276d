// Package purity checks whether a Go package is pure enough for the core: no goroutine, channel, clock, random source
// of its own, access to the outside world, or package-level state, so that the same calls always give the same results.
// Its test applies the check to the core packages. It repeats some of the linters' checks on purpose, since a linter
// exclusion is easily added. It also finds files of a package that use each other in a circle.
package purity
