package expect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// clients use a connection for each request in flight.
var clients = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// Answer is what a client got, and the error for which it got none, or not all.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error
}

// Reason returns Weir's reason for a rejection.
func (a Answer) Reason() string { return a.Header.Get("x-weir-reason") }

// Served returns an error unless the answer is whole and its status 200.
func (a Answer) Served() error {
	if a.Err != nil || a.Status == http.StatusOK {
		return a.Err
	}
	return fmt.Errorf("status %d, %v: %s", a.Status, a.Header, a.Body)
}

// Post sends JSON to a URL, with these headers (name, value, …), and reads the whole answer.
func Post(ctx context.Context, url, body string, header ...string) Answer {
	return Send(ctx, http.MethodPost, url, body, append([]string{"content-type", "application/json"}, header...)...)
}

// Send sends a request, with these headers (name, value, …), and reads the whole answer.
func Send(ctx context.Context, method, url, body string, header ...string) Answer {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Answer{Err: err}
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := clients.Do(request)
	if err != nil {
		return Answer{Err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(text), err}
}
