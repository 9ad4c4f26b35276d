package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// ErrNotLoopback is the error for an address that is not a loopback address.
var ErrNotLoopback = errors.New("not a loopback address")

// ClientConfig is the destination and protocol of requests.
type ClientConfig struct {
	// BaseURL is the scheme, host and port, such as http://127.0.0.1:10000. It must be plain HTTP to a loopback
	// address, unless Anywhere is set.
	BaseURL string
	// Anywhere allows any host, and HTTPS, for a host named by an operator.
	Anywhere bool
	// Dial replaces the network, for tests in memory; nil dials BaseURL.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client sends requests to one address. Several runs may share it; Close it after the last.
type Client struct {
	base      *url.URL
	transport *http.Transport
}

// NewClient returns a client that keeps all connections it opened, as many as it ever had requests in flight.
// Connections are not limited: a limit would be an unmeasured queue.
func NewClient(config ClientConfig) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("loadgen: base URL: %w", err)
	}
	if base.Scheme != "http" && !(config.Anywhere && base.Scheme == "https") || base.Host == "" {
		return nil, fmt.Errorf("loadgen: base URL %q: want http://host:port", config.BaseURL)
	}
	if host := base.Hostname(); !config.Anywhere && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("loadgen: base URL %q: %w", config.BaseURL, ErrNotLoopback)
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: -1}).DialContext
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &Client{base: base, transport: &http.Transport{
		DialContext:         dial,
		Protocols:           protocols,
		MaxIdleConnsPerHost: MaxRequests, // never close idle connections for their number
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // leave the body as it is on the wire
		WriteBufferSize:     16 << 10,
		ReadBufferSize:      16 << 10,
	}}, nil
}

// Close closes the idle connections. It must not be called during a run.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// address is the URL of a path with its query.
func (c *Client) address(path string) (*url.URL, error) {
	relative, err := url.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("loadgen: path %q: %w", path, err)
	}
	if relative.Host != "" {
		return nil, fmt.Errorf("loadgen: path %q names a host: %w", path, ErrNotLoopback)
	}
	return c.base.ResolveReference(relative), nil
}
