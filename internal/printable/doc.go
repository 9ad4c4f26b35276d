// Package printable removes terminal control sequences from texts that clients choose.
package printable
