// Package envoy holds the Envoy configurations that Weir ships. Each .yaml file beside this one is a complete bootstrap
// that Envoy runs as it is; its first lines say what it is for. The folder auth has what some of them name: keys.
package envoy

import "embed"

// Files are the shipped configurations, by file name (recommended.yaml and others), and the folder auth.
//
//go:embed *.yaml auth
var Files embed.FS
