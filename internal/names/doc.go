// Package names has the objectives and models that Weir knows by name, with the meaning and the source of each name:
// the configuration file or a resource of the cluster. Merge is a pure function of both.
//
// # Which resources count
//
// A resource counts if its poolRef names the pool: its name, its group and the kind InferencePool. Only the pool's
// namespace is watched. An InferenceModel may name either group of the pool; without a group it means the old one. A
// resource being deleted does not count.
//
// # Precedence of a name's resources
//
// For a model or an objective named in the file, only the file counts: for the whole model, or the objective's
// priority. Otherwise
//
//	an objective's priority   is that of the InferenceObjective of this name, 0 if it has none
//	a model's targets         are those of the first found: the InferenceModelRewrites' rules that match the
//	                          name, their rules that match every name, the InferenceModel's, its own name
//	a model's criticality     is the InferenceModel's, Standard if it has none; without an InferenceModel it is undeclared
//
// If two rules match, the older resource's rule counts, and within one resource the first rule; of two InferenceModels
// with the same modelName the older counts. Resources created in the same second are ordered by name. Precedence is
// never chained: a target is the model's name at the model servers, and is not looked up again.
//
// A rule that matches every name also applies to models without a resource (Names.OtherTargets), but does not make them
// known.
//
// # Refused resources
//
// A resource with a problem is refused as a whole, with a Verdict that names its fields and their values; other
// resources are not affected. Objects may be hostile: a name has at most MaxNameBytes bytes, a model at most MaxTargets
// targets, and all resources together give at most MaxNames models and as many objectives, the oldest resources' first.
// A verdict's message has at most MaxMessageBytes bytes.
//
// The order of the lists that Merge is given never matters.
package names
