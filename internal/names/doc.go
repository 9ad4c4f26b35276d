// Package names has the objectives and models that Weir knows by name, with the meaning and the source of each name:
// the configuration file or a resource of the cluster. Merge is a pure function of both.
//
// # Which resources count
//
// A resource counts if its poolRef names the pool: its name, its group and the kind InferencePool; the namespace is the
// pool's, since only that is watched. An InferenceModel may name the pool in either group, and one that names no group
// means the old one. A resource that is being deleted is gone.
//
// # Which one counts for a name
//
// A model or an objective that the file names is the file's alone: the whole model, or the objective's priority. Otherwise
//
//	an objective's priority   is that of the InferenceObjective of this name, 0 if it has none
//	a model's targets         are those of the first found: the InferenceModelRewrites' rules that match the
//	                          name, their rules that match every name, the InferenceModel's, its own name
//	a model's criticality     is the InferenceModel's, Standard if it has none; without an InferenceModel it is undeclared
//
// If two rules match, the older resource's counts, and within one resource the first; of two InferenceModels with the same
// modelName the older. Resources that were created in the same second are ordered by their names. Precedence is never
// chained: a target is the name under which model servers know the model, and is not looked up again.
//
// A rule that matches every name also holds for models that nothing names (Names.OtherTargets), but makes none of them
// known.
//
// # What cannot be used
//
// A resource with a problem is refused as a whole, with a Verdict that names its fields and their values, and counts for
// nothing; all others go on. Objects may be hostile: no name is longer than MaxNameBytes, no model has more than
// MaxTargets targets, and the resources together give no more than MaxNames models and as many objectives, of which the
// oldest resources' stay. A verdict's message is at most MaxMessageBytes long.
//
// The order of the lists that Merge is given never matters.
package names
