// Package ask asks an apiserver for the facts that package doctor checks: [Cluster] reads, and writes nothing but reviews of
// permissions, which the apiserver does not keep.
//
// The questions follow from the options of epp: an InferencePool or a selector, an election or none. The permissions are those
// of a service account if it is named, by impersonation, and else those of whoever asks. A question that the apiserver does not
// answer because the caller may not ask it becomes a note; without any answer [Cluster] returns an error.
package ask
