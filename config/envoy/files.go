// Package envoy holds the Envoy configurations that Weir ships. Each .yaml file beside this one is a complete bootstrap
// that Envoy runs as it is; its first lines say what it is for.
package envoy

import "embed"

// Files are the shipped configurations, by file name (recommended.yaml and others).
//
//go:embed *.yaml
var Files embed.FS
