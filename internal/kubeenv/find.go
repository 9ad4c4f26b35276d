package kubeenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weir-epp/weir/internal/checkout"
)

// ErrNoAssets is in the error of Assets if the programs are missing. Its text says how to get them.
var ErrNoAssets = errors.New("no kube-apiserver and etcd: `make test-kube-assets` builds them into .cache, " +
	"or set KUBEBUILDER_ASSETS to a directory that has both")

// assets is the directory that hack/kube.sh keeps current, relative to the repository's root.
const assets = ".cache/kube/current"

// Assets returns the directory of kube-apiserver and etcd: $KUBEBUILDER_ASSETS if set; otherwise the directory made by
// hack/kube.sh in the repository around the working directory. The error is ErrNoAssets, or names the missing program.
func Assets() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		root, err := checkout.Root()
		if err != nil {
			return "", fmt.Errorf("kubeenv: %w: %w", err, ErrNoAssets)
		}
		dir = filepath.Join(root, assets)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("kubeenv: %w", ErrNoAssets)
		}
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("kubeenv: %w: %w", err, ErrNoAssets)
		}
	}
	return dir, nil
}
