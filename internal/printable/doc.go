// Package printable replaces or escapes characters that could control an operator's terminal, in texts that clients
// choose.
package printable
