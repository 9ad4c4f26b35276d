package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

const (
	listPath     = "/v1/models"
	listInterval = 30 * time.Second
	mostList     = 1 << 20 // bytes of a list
	mostModels   = 4096    // of a list
	longestModel = 1 << 30 // tokens; a longer one is invalid
)

// Listing is the content of an endpoint's list of models.
type Listing struct {
	// Longest is the longest stated context of any model, in tokens; 0: none is stated.
	Longest int64
	// Adapters are the LoRA adapters: the models with a parent.
	Adapters []string
	// Lacks are the needs that none of the models meets, ignoring adapters; unstated needs are met.
	Lacks scheduling.Needs
	// Unloaded are the models stated as not loaded, ascending; nil: none is.
	Unloaded []string
}

func (l *Listing) equal(o *Listing) bool {
	return l.Longest == o.Longest && l.Lacks == o.Lacks && slices.Equal(l.Unloaded, o.Unloaded) && slices.Equal(l.Adapters, o.Adapters)
}

// root returns the URL where an endpoint serves requests.
func (f *fetcher) root(address string) string {
	scheme := f.config.Scheme
	if f.config.Port != 0 {
		scheme = "http" // the scheme is that of another port
	}
	return scheme + "://" + address
}

// listing gets an endpoint's list of models.
func (f *fetcher) listing(ctx context.Context, url string) (Listing, error) {
	text, err := f.text(ctx, url)
	if err != nil {
		return Listing{}, err
	}
	return listingOf(text)
}

// text gets a page of at most mostList bytes.
func (f *fetcher) text(ctx context.Context, url string) ([]byte, error) {
	response, err := f.get(ctx, url, "application/json")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostList+1))
	if err != nil {
		return nil, fmt.Errorf("scraping: %w", err)
	}
	if len(text) > mostList {
		return nil, tooLarge(mostList)
	}
	return text, nil
}

// listingOf returns the content of a list of models.
func listingOf(text []byte) (l Listing, err error) {
	var list struct {
		Data []struct {
			ID     string          `json:"id"`
			Length *int64          `json:"max_model_len"`
			Parent json.RawMessage `json:"parent"`
			abilities
			loading
		} `json:"data"`
		Models json.RawMessage `json:"models"` // llama.cpp states what its model can do in a second list
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return l, &failure{reason: BadValue, text: "the list of models: " + err.Error()}
	}
	if n := len(list.Data); n > mostModels {
		return l, &failure{reason: TooLarge, text: fmt.Sprintf("the list has %d models, more than %d", n, mostModels)}
	}
	var second []abilities
	if json.Unmarshal(list.Models, &second) != nil || len(second) != len(list.Data) {
		second = make([]abilities, len(list.Data)) // they state nothing
	}
	lacks, some := scheduling.AllNeeds, false
	for i, m := range list.Data {
		if len(m.Parent) < 2 || m.Parent[0] != '"' {
			lacks, some = lacks&(m.lacks()|second[i].lacks()), true
		}
		if len(m.Parent) > 2 && m.Parent[0] == '"' && m.ID != "" && len(m.ID) <= longestName {
			l.Adapters = append(l.Adapters, m.ID)
		}
		if m.unloaded() && m.ID != "" && len(m.ID) <= longestName && len(l.Unloaded) < scheduling.MaxUnloaded {
			l.Unloaded = append(l.Unloaded, m.ID)
		}
		switch {
		case m.Length == nil:
		case *m.Length < 1 || *m.Length > longestModel:
			return Listing{}, &failure{reason: BadValue, text: fmt.Sprintf("max_model_len of %.100q: %d: must be from 1 to %d", m.ID, *m.Length, longestModel)}
		default:
			l.Longest = max(l.Longest, *m.Length)
		}
	}
	if some {
		l.Lacks = lacks
	}
	slices.Sort(l.Unloaded)
	l.Unloaded = slices.Compact(l.Unloaded)
	slices.Sort(l.Adapters)
	l.Adapters = slices.Compact(l.Adapters)
	return l, nil
}

// list reads a due target's list of models, and its engine's statement of slots. An unreadable list changes nothing:
// the endpoint keeps its earlier statements. The target's scrape calls it.
func (s *Scraper) list(ctx context.Context, t *target, answers bool) {
	now := time.Now()
	if s.parts.Listed == nil || !answers || now.Before(t.list) {
		return
	}
	t.list = now.Add(listInterval)
	s.listModels(ctx, t)
	s.states(ctx, t)
}

func (s *Scraper) listModels(ctx context.Context, t *target) {
	bounded, stop := context.WithTimeout(ctx, s.config.Timeout)
	defer stop()
	s.begins(t, stop)
	listing, err := s.listing(bounded, s.root(t.address)+listPath)
	if errors.Is(bounded.Err(), context.Canceled) {
		return
	}
	if err != nil {
		s.log.V(1).Info("the models of the endpoint cannot be listed", "address", t.address, "error", err.Error())
		return
	}
	if !listing.equal(&t.listing) {
		if !slices.Equal(listing.Unloaded, t.listing.Unloaded) {
			if t.unloaded = nil; len(listing.Unloaded) > 0 {
				t.unloaded = &scheduling.Unloaded{Models: listing.Unloaded}
			}
		}
		t.listing = listing
		s.parts.Listed(t.id, listing)
	}
}

// answers reports whether a server answers, even with an error.
func answers(err error) bool {
	switch reasonOf(err) {
	case Unreachable, Slow:
		return err == nil
	default:
		return true
	}
}

// get requests a page that is not HTML. The caller closes the body.
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
