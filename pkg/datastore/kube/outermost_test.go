package kube

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// picky is an apiserver that knows one token only.
type picky struct{ token string }

// RoundTrip implements http.RoundTripper.
func (p *picky) RoundTrip(r *http.Request) (*http.Response, error) {
	status := http.StatusUnauthorized
	if r.Header.Get("Authorization") == "Bearer "+p.token {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: r, Body: io.NopCloser(strings.NewReader("")),
	}, nil
}

// A list that began with a token that is not accepted any more goes on with the next one in the file, as the kubelet puts
// it there: within a minute, for which client-go keeps a token.
func TestATokenChangesWhileAListIsRepeated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		write("old")
		server := &picky{token: "old"}
		c, err := NewCluster(&rest.Config{Host: "http://apiserver/prefix", Transport: server, BearerTokenFile: file}, logr.Discard(), nil)
		if err != nil {
			t.Fatal(err)
		}
		list := func() {
			t.Helper()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.config.Host+"/api/v1/namespaces/serving/pods", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := c.manager.GetHTTPClient().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Fatal(response.Status)
			}
		}
		list()
		server.token = "new"
		time.AfterFunc(30*time.Second, func() { write("new") })
		began := time.Now()
		list()
		if took := time.Since(began); took < 30*time.Second || took > 92*time.Second {
			t.Errorf("the new token, there after 30 s, was used after %v", took)
		}
	})
}

// The server of the clients is the one of the configuration, however that says https.
func TestOutermostKeepsTheServer(t *testing.T) {
	as := func(next http.RoundTripper) http.RoundTripper { return next }
	for _, c := range []struct {
		host string
		tls  rest.TLSClientConfig
		want string
	}{
		{"https://10.0.0.1:443", rest.TLSClientConfig{}, "https://10.0.0.1:443"},
		{"10.0.0.1:6443", rest.TLSClientConfig{Insecure: true}, "https://10.0.0.1:6443"},
		{"10.0.0.1:8080", rest.TLSClientConfig{}, "http://10.0.0.1:8080"},
		{"https://gate/clusters/one", rest.TLSClientConfig{Insecure: true}, "https://gate/clusters/one"},
	} {
		out, err := outermost(&rest.Config{Host: c.host, TLSClientConfig: c.tls, BearerToken: "secret"}, as)
		if err != nil {
			t.Fatal(err)
		}
		url, _, err := rest.DefaultServerUrlFor(out)
		if err != nil || strings.TrimSuffix(url.String(), "/") != c.want {
			t.Errorf("%s: %v, %v; want %s", c.host, url, err, c.want)
		}
		if _, err := rest.HTTPClientFor(out); err != nil {
			t.Errorf("%s: %v", c.host, err)
		}
	}
}
