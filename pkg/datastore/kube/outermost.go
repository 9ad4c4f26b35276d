package kube

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// outermost returns a configuration for clients of the same apiserver with wrap as the outermost transport: a request
// repeated by wrap is authenticated each time, with the present token of the file. rest.Config.Wrap puts a transport
// below authentication, where a repeated request keeps its token.
func outermost(cfg *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) (*rest.Config, error) {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	url, _, err := rest.DefaultServerUrlFor(cfg) // the TLS options may decide about https
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	out := rest.AnonymousClientConfig(cfg)
	out.Host = url.String()
	// The transport already has these.
	out.TLSClientConfig, out.Dial, out.Proxy = rest.TLSClientConfig{}, nil, nil
	out.Transport = wrap(transport)
	return out, nil
}
