package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	listPath     = "/v1/models"
	listInterval = 30 * time.Second
	mostList     = 1 << 20 // bytes of a list
	mostModels   = 4096    // of a list
	longestModel = 1 << 30 // tokens; a longer one is no length
)

// listURL returns where an endpoint lists its models: where it serves requests.
func (f *fetcher) listURL(address string) string {
	scheme := f.config.Scheme
	if f.config.Port != 0 {
		scheme = "http" // the scheme is that of another port
	}
	return scheme + "://" + address + listPath
}

// longest gets an endpoint's list of models, and returns the longest context of any of them in tokens, or 0 if it states none.
func (f *fetcher) longest(ctx context.Context, url string) (int64, error) {
	response, err := f.get(ctx, url, "application/json")
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostList+1))
	if err != nil {
		return 0, fmt.Errorf("scraping: %w", err)
	}
	if len(text) > mostList {
		return 0, tooLarge(mostList)
	}
	return longestOf(text)
}

// longestOf returns the longest context that a list of models states, in tokens, or 0 if it states none.
func longestOf(text []byte) (longest int64, err error) {
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Length *int64 `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return 0, &failure{reason: BadValue, text: "the list of models: " + err.Error()}
	}
	if n := len(list.Data); n > mostModels {
		return 0, &failure{reason: TooLarge, text: fmt.Sprintf("the list has %d models, more than %d", n, mostModels)}
	}
	for _, m := range list.Data {
		switch {
		case m.Length == nil:
		case *m.Length < 1 || *m.Length > longestModel:
			return 0, &failure{reason: BadValue, text: fmt.Sprintf("max_model_len of %.100q: %d: must be from 1 to %d", m.ID, *m.Length, longestModel)}
		default:
			longest = max(longest, *m.Length)
		}
	}
	return longest, nil
}

// list reads the list of models of a target whose turn it is. A list that cannot be read changes nothing: the endpoint has the
// length that it has stated before. It is called by the target's scrape.
func (s *Scraper) list(ctx context.Context, t *target, answers bool) {
	now := time.Now()
	if s.parts.Listed == nil || !answers || now.Before(t.list) {
		return
	}
	t.list = now.Add(listInterval)
	bounded, stop := context.WithTimeout(ctx, s.config.Timeout)
	defer stop()
	s.begins(t, stop)
	longest, err := s.longest(bounded, s.listURL(t.address))
	if errors.Is(bounded.Err(), context.Canceled) {
		return
	}
	if err != nil {
		s.log.V(1).Info("the models of the endpoint cannot be listed", "address", t.address, "error", err.Error())
		return
	}
	if longest != t.longest {
		t.longest = longest
		s.parts.Listed(t.id, longest)
	}
}

// answers reports whether a server answers, however wrong.
func answers(err error) bool {
	switch reasonOf(err) {
	case Unreachable, Slow:
		return err == nil
	default:
		return true
	}
}

// get asks for a page that is no HTML. The caller closes the body.
func (f *fetcher) get(ctx context.Context, url, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("scraping: %w", err)
	}
	request.Header.Set("User-Agent", "weir-scrape")
	request.Header.Set("Accept", accept)
	response, err := f.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("scraping: %w", err)
	}
	if err := f.acceptable(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}
