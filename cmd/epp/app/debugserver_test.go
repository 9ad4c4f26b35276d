package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A website whose name resolves to the loopback reads no page through a browser on this machine.
func TestDebugPortAnswersToItsOwnNames(t *testing.T) {
	r := start(t, testOptions())
	status := func(path, host string) (code int) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", r.Ports().Debug, path), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() //nolint:errcheck // not read
		return response.StatusCode
	}
	for _, p := range r.debugPages() {
		path := strings.TrimSuffix(strings.TrimPrefix(p.pattern, "GET "), "{$}")
		if code := status(path, "rebound.example:9091"); code != http.StatusForbidden {
			t.Errorf("%s for rebound.example: %d", path, code)
		}
	}
	for _, path := range []string{"/debug", "/debug/"} { // a redirection to the front page, which the client follows
		if code := status(path, "localhost"); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	for _, host := range []string{"127.0.0.1:9091", "[::1]:9091", "::1", "10.0.0.1", "localhost", "LOCALHOST:1", "localhost.", "weir.localhost:9091"} {
		if code := status("/statusz", host); code != http.StatusOK {
			t.Errorf("%s: %d", host, code)
		}
	}
	for _, host := range []string{"localhost.example", "notlocalhost", "127.0.0.1.example:80", "weir"} {
		if code := status("/statusz", host); code != http.StatusForbidden {
			t.Errorf("%s: %d", host, code)
		}
	}
}
