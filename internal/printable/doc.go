// Package printable keeps texts that clients choose from commanding the terminals of operators.
package printable
