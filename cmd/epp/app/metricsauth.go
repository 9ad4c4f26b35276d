package app

import (
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/weir-epp/weir/pkg/datastore/kube"
)

// authorized returns the handler for those who show a token that the apiserver knows (TokenReview) and who may get the
// path by its rules for non-resource URLs (SubjectAccessReview). It remembers the answers for a while: a token's for one
// minute, a permission's for five, a refusal's for half of one. Without a token the status is 401, without the permission
// 403; for a token that the apiserver does not know it is 500, as while the apiserver is away: the library does not tell
// the two apart.
func authorized(o *Options, handler http.Handler, log logr.Logger) (http.Handler, error) {
	connection, err := kube.Connect(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--metrics-endpoint-auth: %w", err)
	}
	client, err := rest.HTTPClientFor(connection)
	if err != nil {
		return nil, fmt.Errorf("--metrics-endpoint-auth: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(connection, client)
	if err != nil {
		return nil, fmt.Errorf("--metrics-endpoint-auth: %w", err)
	}
	return filter(log, handler)
}
