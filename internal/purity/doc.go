// Package purity says whether a Go package is pure enough for the core: no goroutine, no channel, no clock, no random
// source of its own, nothing of the outside world, and no package-level state, so that the same calls always give the
// same results. Its test applies it to the core packages; what linters see too is here once more, since a linter's
// exclusion is easily written.
package purity
