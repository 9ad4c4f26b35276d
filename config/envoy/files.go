// Package envoy holds the Envoy configurations that Weir ships. Each .yaml file beside this one is a complete bootstrap
// that Envoy runs as it is; its first lines say what it is for. The folder eds has the addresses of the model servers,
// and the folder auth keys that some files name.
package envoy

import "embed"

// Files are the shipped configurations, by file name (recommended.yaml and others), and the folders auth and eds.
//
//go:embed *.yaml auth eds
var Files embed.FS
