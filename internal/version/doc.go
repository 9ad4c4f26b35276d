// Package version identifies the build of a binary, for --version, the log, /statusz and weir_build_info.
package version
