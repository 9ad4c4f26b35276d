// Package release makes a release twice, from two clones of this checkout in two folders, the second in the environment
// of another machine. The sums must be equal and the layout valid. The amd64 image must serve a request in its own
// root, as the user that it names; the arm64 image is not run, only its ELF headers are read. Helm must render the
// chart. The clones include uncommitted changes of tracked files. The test needs git, root or user namespaces, and
// Envoy; compiling for arm64 takes minutes the first time.
package release
