// Package graph encodes a graph of Go values as bytes and decodes it again: everything that is reachable from a root,
// including unexported fields, with every pointer pointing where it did, even into the middle of another value.
// Checkpoints of the decision machine are made with it. Fields need not be listed, so a new field cannot be forgotten.
//
// Only a program with the same types can decode the bytes: they contain no names, and begin with a fingerprint of all
// types.
//
// The encoding has the values, not their memory: elements between a slice's length and its capacity are not encoded,
// nor is the order of a map. Equal graphs that were built in the same way have equal encodings if the keys of their
// maps are of basic kinds, or structs of these. Functions and channels must be nil. A type with such fields, or of
// another package's internals, is registered with Codec.Opaque, and its values are encoded by name or in another form
// of their own.
//
// Nothing may change the graph while it is encoded.
package graph
