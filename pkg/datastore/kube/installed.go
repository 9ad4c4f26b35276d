package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// installed has the apiserver's resources, and whether they have a status subresource.
type installed map[schema.GroupVersionResource]bool

// look asks the apiserver for the kinds in the groups of objectives and models.
func (c *Cluster) look(ctx context.Context) (installed, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	found := installed{}
	for _, gv := range []schema.GroupVersion{kubeapi.NamesGroupVersion, kubeapi.OldGroupVersion} {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
		cancel()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kube: looking for %s: %w", gv, err)
		}
		for _, r := range list.APIResources {
			resource, sub, _ := strings.Cut(r.Name, "/")
			gvr := gv.WithResource(resource)
			found[gvr] = found[gvr] || sub == "status"
		}
	}
	return found, nil
}
