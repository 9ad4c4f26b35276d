package kube

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// outermost returns a configuration for clients of the same apiserver whose requests pass wrap before anything else: what
// wrap repeats is authenticated anew each time, with the token that the file has then. rest.Config.Wrap puts a transport
// below authentication, where a repeated request keeps its token.
func outermost(cfg *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) (*rest.Config, error) {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	url, _, err := rest.DefaultServerUrlFor(cfg) // whether it is https, the TLS options may say
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	out := rest.AnonymousClientConfig(cfg)
	out.Host = url.String()
	// The transport has them.
	out.TLSClientConfig, out.Dial, out.Proxy = rest.TLSClientConfig{}, nil, nil
	out.Transport = wrap(transport)
	return out, nil
}
