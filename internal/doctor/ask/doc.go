// Package ask asks an apiserver for the facts that package doctor checks: [Cluster] reads, and writes nothing but reviews of
// permissions, which the apiserver does not keep.
//
// The questions follow from epp's options: an InferencePool or a selector, an election or none. The permissions are
// those of the named service account, by impersonation, or else the caller's. A question that the caller may not ask
// becomes a note. Without any answer [Cluster] returns an error.
package ask
