// Release writes the files of a release of Weir to a directory, which `make release VERSION=1.2.3` calls dist:
//
//	linux-amd64/epp, weir            the programs, static; linux-arm64 too
//	weir-1.2.3-linux-amd64.tar.gz    both, with the licence
//	epp-1.2.3-linux-amd64.cdx.json   the modules in a program, from its own build information, by CycloneDX
//	oci                              an OCI layout: one index, 1.2.3, with an image for each platform
//	weir-1.2.3.tgz                   the chart, whose version and tag of the image are 1.2.3
//	SHA256SUMS                       of all of these
//
// The same commit and version give the same bytes in every folder and on every machine: programs are built with the Go
// version of go.mod, without paths or git state; archives have fixed owners, modes and order; every time is the
// commit's. A tree with uncommitted changes is refused, since its files would name a commit that lacks the changes.
//
//	go run -C hack/release . make -version 1.2.3 -source ROOT -out DIR
//	go run -C hack/release . verify -dist DIR [-unpack DIR -platform linux/amd64]
//
// verify checks the sums and every blob, manifest and configuration of the layout, and unpacks one image.
package main
