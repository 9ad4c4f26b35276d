package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	bin     = "usr/local/bin" // where the Dockerfile has the programs too
	roots   = "etc/ssl/certs/ca-certificates.crt"
	nonroot = "65532:65532" // by number, so that an orchestrator can see that it is not root
)

// certificates returns Mozilla's certificate authorities, as a version of golang.org/x/crypto has them. Roots
// trusted only up to a date are left out: the file has no place for dates.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}

// image writes the OCI layout.
func (r release) image() error {
	authorities, err := r.layer([]entry{{name: roots, mode: 0o644, text: certificates()}})
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := r.imageOf(p, authorities)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	dir, err := layout.Write(filepath.Join(r.dir, "oci"), empty.Index)
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": r.version}
	return dir.AppendIndex(index, layout.WithAnnotations(name))
}

// labels returns what a registry shows of the image.
func (r release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Weir",
		"org.opencontainers.image.description": "An endpoint picker for LLM inference behind Envoy that queues fairly",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit.hash,
		"org.opencontainers.image.created":     r.commit.time.Format("2006-01-02T15:04:05Z"),
	}
}

// imageOf returns the image of a platform.
func (r release) imageOf(p platform, authorities v1.Layer) (v1.Image, error) {
	var entries []entry
	for _, program := range programs {
		entries = append(entries, entry{name: path.Join(bin, program), mode: 0o755, source: r.program(p, program)})
	}
	layer, err := r.layer(entries)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.commit.time}
	var adds []mutate.Addendum
	for _, l := range []struct {
		layer v1.Layer
		by    string
	}{{authorities, "Mozilla's certificate authorities"}, {layer, "epp and weir"}} {
		adds = append(adds, mutate.Addendum{Layer: l.layer, History: v1.History{Created: created, CreatedBy: "make release", Comment: l.by}})
	}
	if image, err = mutate.Append(image, adds...); err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = p.os, p.arch, created
	file.Config = v1.Config{
		User:         nonroot,
		Entrypoint:   []string{"/" + bin + "/epp"},
		Env:          []string{"PATH=/" + bin},
		ExposedPorts: map[string]struct{}{"9002/tcp": {}, "9003/tcp": {}, "9090/tcp": {}}, // ext_proc, health, metrics
		Labels:       r.labels(),
	}
	return mutate.ConfigFile(image, file)
}

// layer returns a layer with the entries, and with the directories above them first.
func (r release) layer(entries []entry) (v1.Layer, error) {
	var directories []entry
	seen := map[string]bool{".": true}
	for _, e := range entries {
		var above []entry
		for dir := path.Dir(e.name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			above = append([]entry{{name: dir, mode: 0o755}}, above...)
		}
		directories = append(directories, above...)
	}
	text, err := pack(append(directories, entries...), r.commit.time)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
}
