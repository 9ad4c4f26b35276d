// Package version says what a binary was made from: for --version, the log, /statusz and weir_build_info.
package version
