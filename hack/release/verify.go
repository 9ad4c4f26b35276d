package main

import (
	"archive/tar"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// verify checks a release, and unpacks the image of a platform into a directory if one is given.
func verify(dist, unpack, platform string, out io.Writer) error {
	want, err := os.ReadFile(filepath.Join(dist, sumsFile))
	if err != nil {
		return err
	}
	have, err := sumsOf(dist)
	if err != nil {
		return err
	}
	if have != string(want) {
		return fmt.Errorf("%s has other files than its %s says", dist, sumsFile)
	}
	index, err := indexOf(filepath.Join(dist, "oci"))
	if err != nil {
		return fmt.Errorf("the layout in %s: %w", dist, err)
	}
	if unpack != "" {
		image, err := imageFor(index, platform)
		if err != nil {
			return err
		}
		if err := unpackImage(image, unpack); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s: the sums and the layout are valid\n", dist)
	return err
}

// blobsAreTheirs checks that each blob has the sum that is its name, which validate does not ask of manifests.
func blobsAreTheirs(dir string) error {
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		sum, err := sumOf(blob)
		if err != nil {
			return err
		}
		if filepath.Base(blob) != hex.EncodeToString(sum) {
			return fmt.Errorf("%s has the sum %x", blob, sum)
		}
	}
	return nil
}

// indexOf returns the one index of a layout, in which everything is valid.
func indexOf(dir string) (v1.ImageIndex, error) {
	if err := blobsAreTheirs(dir); err != nil {
		return nil, err
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	if err := validate.Index(all); err != nil {
		return nil, err
	}
	indexes, err := partial.FindIndexes(all, func(v1.Descriptor) bool { return true })
	if err != nil {
		return nil, err
	}
	if len(indexes) != 1 {
		return nil, fmt.Errorf("%d indexes, want one", len(indexes))
	}
	return indexes[0], nil
}

// imageFor returns the one image of a platform.
func imageFor(index v1.ImageIndex, platform string) (v1.Image, error) {
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, err
	}
	images, err := partial.FindImages(index, func(d v1.Descriptor) bool { return d.Platform != nil && d.Platform.Satisfies(*want) })
	if err != nil {
		return nil, err
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("%d images for %s, want one", len(images), platform)
	}
	return images[0], nil
}

// unpackImage writes the files and directories of an image, and refuses one that has anything else.
func unpackImage(image v1.Image, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, header, archive); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name, mode := filepath.Clean(header.Name), fs.FileMode(header.Mode).Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	default:
		return fmt.Errorf("a file of the type %q", header.Typeflag)
	}
	return root.Chmod(name, mode) // whatever the umask
}
