// Package release makes a release twice, from two clones of this checkout in two folders, the second one as another machine
// would, and uses what it has made: the sums are equal, the layout is valid, the image of amd64 serves a request as the user
// that it names in a root of its own (that of arm64 is not run: its ELF headers are read), and Helm renders the chart. Changes
// of tracked files that are not committed are a part of the clones. It needs git, root or user namespaces, and Envoy;
// compiling for arm64 takes minutes the first time.
package release
