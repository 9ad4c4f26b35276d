package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/status"
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
	scheme, _, found := strings.Cut(name, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// withoutPassword returns a name without the password that an address may have.
func withoutPassword(name string) string {
	if at, err := url.Parse(name); err == nil && isURL(name) {
		return at.Redacted()
	}
	return name
}

// patience is the longest time without a byte of an answer. An epp may keep a reader waiting for a few seconds.
var patience = 30 * time.Second

// errSilent is the error of an answer that stalls.
var errSilent = errors.New("no byte came for a long time")

// answer is the body of an answer. It ends with errSilent if it stalls.
type answer struct {
	io.ReadCloser
	ctx   context.Context
	timer *time.Timer // cancels ctx
}

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	a.timer.Reset(patience)
	if cause := context.Cause(a.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

func (a *answer) Close() error {
	a.timer.Stop()
	return a.ReadCloser.Close()
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
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { cancel(errSilent) })
	response, err := status.Client.Do(request.WithContext(ctx))
	if err != nil {
		timer.Stop()
		return nil, errors.Join(context.Cause(ctx), err)
	}
	body := &answer{response.Body, ctx, timer}
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(body, mostReason)) // the status says it without
		_ = body.Close()
		return nil, fmt.Errorf("%s: status %d: %s", at.Redacted(), response.StatusCode, printable.Text(strings.TrimSpace(string(reason))))
	}
	return body, nil
}
