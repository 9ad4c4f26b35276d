package status

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// UnreachableError is the error of a replica that does not answer, or refuses the question.
type UnreachableError struct{ cause error }

func (e *UnreachableError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }

// Tail opens the tail of one replica: lines of JSON, each an Ended. A flow of "" and no outcomes mean all.
func Tail(ctx context.Context, address, flow string, outcomes []string) (io.ReadCloser, error) {
	v := url.Values{}
	if flow != "" {
		v.Set("flow", flow)
	}
	if len(outcomes) > 0 {
		v.Set("outcome", strings.Join(outcomes, ","))
	}
	at := url.URL{Scheme: "http", Host: address, Path: "/debug/tail", RawQuery: v.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, &UnreachableError{fmt.Errorf("no epp answers at its debug port: %w", err)}
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		return nil, &UnreachableError{fmt.Errorf("%s answers %s: %s", at.Path, response.Status, firstLine(string(text)))}
	}
	return response.Body, nil
}
