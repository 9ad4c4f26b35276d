// Package graph writes a graph of Go values as bytes and reads it back: everything that can be reached from a root, with
// unexported fields, and with every pointer where it pointed, also into the middle of another value. It is what a
// checkpoint of the decision machine is made with: a field that somebody adds is in it without being listed, so none can
// be forgotten.
//
// The bytes are for the program that wrote them: they hold no names, and begin with a fingerprint of all types. A program
// in which a type has changed refuses them.
//
// What is written is a value's meaning, not its memory: what lies between a slice's length and its capacity is not, nor is
// the order of a map. Equal graphs give equal bytes, if they have grown in the same way and maps have keys of basic kinds
// or structs of these. Functions and channels must be nil. A type that has such (or belongs to somebody else) is given to
// Codec.Opaque: its values are written by name or in some other form of their own.
//
// Nothing else may touch the graph while it is written.
package graph
