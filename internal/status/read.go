package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client reads pages of debug ports and admin interfaces. It uses no proxy: the pages are on this machine, or behind a
// forwarded port. It follows no redirects: one could lead to another service of this machine, whose answer would end up
// in weir collect's tar.
var Client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Read reads a page of at most most bytes. It returns an error if the server does not answer, the status is not 200, or
// the page is too large.
func Read(ctx context.Context, address, path string, query url.Values, most int64) ([]byte, error) {
	body, err := open(ctx, address, path, query)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // already read
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: reading: %w", path, err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return text, nil
}

// unansweredError is the error of a server that cannot be reached.
type unansweredError struct{ cause error }

func (e *unansweredError) Error() string { return "nothing answers: " + e.cause.Error() }

func (e *unansweredError) Unwrap() error { return e.cause }

// ofDebugPort makes the error of an unreachable server say that no epp answers there.
func ofDebugPort(err error) error {
	if unanswered := new(unansweredError); errors.As(err, &unanswered) {
		return fmt.Errorf("no epp answers at its debug port: %w", unanswered.cause)
	}
	return err
}

// unknownPath begins the answer of a Go program to a path that it does not have.
const unknownPath = "404 page not found"

// open opens a page.
func open(ctx context.Context, address, path string, query url.Values) (io.ReadCloser, error) {
	at := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: strings.TrimSuffix(query.Encode(), "=")} // Envoy's may lack a value
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address: %w", address, err)
	}
	response, err := Client.Do(request)
	if err != nil {
		return nil, &unansweredError{err}
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		if strings.HasPrefix(path, "/debug/") && strings.HasPrefix(string(text), unknownPath) {
			return nil, fmt.Errorf("no page %s at %s: is that the debug port (--debug-port, 9004)?", path, address)
		}
		return nil, fmt.Errorf("%s answers %s: %s", path, Plain(response.Status), firstLine(string(text)))
	}
	return response.Body, nil
}

// firstLine returns the beginning of a text for people.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return Plain(line[:min(len(line), 500)])
}
