// Package graph encodes a graph of Go values as bytes and decodes it again: everything reachable from a root, including
// unexported fields. Each decoded pointer points to the same place, even into the middle of another value. Checkpoints
// of the decision machine use it. Fields need not be listed, so a new field cannot be forgotten.
//
// Only a program with the same types can decode the bytes: they contain no names, and begin with a fingerprint of all
// types.
//
// The encoding has values only: elements between a slice's length and its capacity are not encoded, and neither is the
// order of a map. Equal graphs built in the same way have equal encodings if the keys of their maps are of basic kinds,
// or structs of these. Functions and channels must be nil. A type with such fields, or with another package's
// internals, is registered with Codec.Opaque; its values are encoded by name or in a form of their own.
//
// Nothing may change the graph while it is encoded. A [Capture] copies it in memory, fast enough to be done under a lock.
package graph
