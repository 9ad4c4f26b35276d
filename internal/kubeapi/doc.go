// Package kubeapi has the Kubernetes API types that Weir reads: InferencePool, InferenceObjective, InferenceModel and
// InferenceModelRewrite, each with the fields that Weir uses and no others. They are compatible in JSON with the
// published CRDs; unknown fields are ignored. [AddToScheme] registers them. Weir's own CRDs are in charts/weir/crds.
package kubeapi
