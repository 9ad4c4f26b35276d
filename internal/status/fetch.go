package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// FetchTimeout bounds one reading of a document.
const FetchTimeout = 5 * time.Second

// client asks no proxy: the debug port is on this machine, or behind a port that is forwarded to it.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}}

// Answer is the document of one replica, or the error for which there is none.
type Answer struct {
	Address  string
	Document *Document
	Err      error
}

// Fetch reads the documents of all replicas at once. The answers are in the order of the addresses.
func Fetch(ctx context.Context, addresses []string, q *Query) []Answer {
	answers := make([]Answer, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() {
			d, err := fetch(ctx, address, q)
			answers[i] = Answer{Address: address, Document: d, Err: err}
		})
	}
	wg.Wait()
	return answers
}

func fetch(ctx context.Context, address string, q *Query) (*Document, error) {
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	at := url.URL{Scheme: "http", Host: address, Path: "/debug/status", RawQuery: q.Values().Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("--address: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no epp answers at its debug port: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %s", at.Path, response.Status, firstLine(string(text)))
	}
	d := &Document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s is no status: %w", at.Path, err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("the status has schema %d, and this weir reads schema %d: use the weir of the same version (%s)", d.Schema, Schema, Plain(d.Version))
	}
	return d, nil
}

// firstLine returns the beginning of a text for people.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return Plain(line[:min(len(line), 200)])
}
