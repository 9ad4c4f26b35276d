package scrape

import (
	"context"
	"crypto/tls"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"sync"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// fetcher gets pages over HTTP. It is safe for concurrent use.
type fetcher struct {
	config    Config
	transport *http.Transport
	pages     sync.Pool // of *page
}

func newFetcher(config Config) *fetcher {
	return &fetcher{
		config: config,
		transport: &http.Transport{
			Proxy:               nil, // endpoints are asked directly, without the environment's proxy
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     4*config.Interval + config.Timeout,
			DisableCompression:  true,
			ReadBufferSize:      16 << 10,
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: config.Insecure}, //nolint:gosec // by a flag of the operator's
		},
		pages: sync.Pool{New: func() any { return newPage(config.Names) }},
	}
}

// urlOf returns the URL of an endpoint's page; attempt is the number of failed attempts.
func (f *fetcher) urlOf(address string, attempt int) string {
	if f.config.Port != 0 {
		at := scheduling.ParseHostPort(address)
		at.Port = uint16(f.config.Port)
		address = at.String()
	}
	path := f.config.Path
	if i := attempt % (1 + len(f.config.Others)); i > 0 {
		path = f.config.Others[i-1]
	}
	return f.config.Scheme + "://" + address + path
}

// fetch gets and reads a page. Redirects are not followed.
func (f *fetcher) fetch(ctx context.Context, url string) (Reading, error) {
	response, err := f.get(ctx, url, "text/plain;version=0.0.4")
	if err != nil {
		return Reading{}, err
	}
	defer func() { _ = response.Body.Close() }()
	p := f.pages.Get().(*page)
	defer f.pages.Put(p)
	reading, err := p.read(response.Body, f.config.MostBytes)
	if err != nil {
		return Reading{}, fmt.Errorf("scraping: %w", err)
	}
	return reading, nil
}

// acceptable returns the reason why an answer is not a page.
func (f *fetcher) acceptable(response *http.Response) error {
	switch media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case response.StatusCode != http.StatusOK:
		return &failure{reason: BadStatus, text: "status " + strconv.Itoa(response.StatusCode)}
	case media == "text/html":
		return &failure{reason: HTML, text: "the page is HTML"}
	case response.ContentLength > f.config.MostBytes:
		return tooLarge(f.config.MostBytes)
	}
	return nil
}

// close closes the kept connections.
func (f *fetcher) close() { f.transport.CloseIdleConnections() }
