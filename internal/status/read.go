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

// client asks no proxy: the pages are on this machine, or behind a port that is forwarded to it. It follows no redirection, which
// could lead to other services of this machine, and their answers into the tar of weir collect.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Read reads a page of at most so many bytes. An error tells of a server that does not answer, of one that answers with
// another status than 200, and of a page that is too large.
func Read(ctx context.Context, address, path string, query url.Values, most int64) ([]byte, error) {
	body, err := open(ctx, address, path, query)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was read
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

// ofDebugPort says what it means that a debug port cannot be reached.
func ofDebugPort(err error) error {
	if unanswered := new(unansweredError); errors.As(err, &unanswered) {
		return fmt.Errorf("no epp answers at its debug port: %w", unanswered.cause)
	}
	return err
}

// open opens a page.
func open(ctx context.Context, address, path string, query url.Values) (io.ReadCloser, error) {
	at := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: strings.TrimSuffix(query.Encode(), "=")} // Envoy has names without values
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s is no address: %w", address, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, &unansweredError{err}
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s answers %s: %s", path, Plain(response.Status), firstLine(string(text)))
	}
	return response.Body, nil
}

// firstLine returns the beginning of a text for people.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return Plain(line[:min(len(line), 500)])
}
