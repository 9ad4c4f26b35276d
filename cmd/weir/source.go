package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/weir-epp/weir/internal/printable"
)

// source opens standard input (-), the answer to an HTTP address, or a file. An address without a path has the path of
// the place given: /debug/recording of an epp, /config_dump of an Envoy.
func source(ctx context.Context, name, place string) (io.ReadCloser, error) {
	switch {
	case name == "-":
		return io.NopCloser(os.Stdin), nil
	case isURL(name):
		return fetch(ctx, name, place)
	default:
		return os.Open(name)
	}
}

// isURL reports whether a name is an HTTP address.
func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// mostReason is the length in bytes of the longest reason of an error that is read from an answer.
const mostReason = 512

// fetch asks an HTTP address, as source does.
func fetch(ctx context.Context, address, place string) (io.ReadCloser, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if at.Path == "" || at.Path == "/" {
		at.Path, at.RawQuery, _ = strings.Cut(place, "?")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, mostReason)) // the status says it without
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: status %d: %s", at, answer.StatusCode, printable.Text(strings.TrimSpace(string(reason))))
	}
	return answer.Body, nil
}
