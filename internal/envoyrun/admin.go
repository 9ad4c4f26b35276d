package envoyrun

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// admin is a client of Envoy's admin interface. Each call has a connection of its own and leaves none behind.
type admin struct {
	address string // ip:port
}

// adminTimeout bounds one call; a paused Envoy does not answer.
const adminTimeout = 10 * time.Second

// adminBodyLimit bounds the size of an answer; all statistics of a large Envoy are a few hundred KB.
const adminBodyLimit = 64 << 20

func (a admin) get(ctx context.Context, path string) ([]byte, error) {
	client := http.Client{Timeout: adminTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, adminBodyLimit))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("admin %s: status %d: %s", path, resp.StatusCode, body)
	}
	return body, nil
}

// stats returns the counters and gauges whose names match the regular expression.
func (a admin) stats(ctx context.Context, filter string) (map[string]int64, error) {
	body, err := a.get(ctx, "/stats?format=json&filter="+url.QueryEscape(filter))
	if err != nil {
		return nil, err
	}
	var page struct {
		Stats []struct {
			Name  string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("admin /stats: %w", err)
	}
	values := make(map[string]int64, len(page.Stats))
	for _, stat := range page.Stats {
		// Text readouts are strings, and histograms come in an entry without a name.
		if value, err := strconv.ParseInt(string(stat.Value), 10, 64); err == nil && stat.Name != "" {
			values[stat.Name] = value
		}
	}
	return values, nil
}

// listeners returns the addresses, ip:port, of the listener for requests and of that with the counters of ext_proc, as
// they were bound; the latter is empty if there is none.
func (a admin) listeners(ctx context.Context) (requests, stats string, err error) {
	body, err := a.get(ctx, "/listeners?format=json")
	if err != nil {
		return "", "", err
	}
	var page struct {
		Statuses []struct {
			Name  string
			Local struct {
				Socket struct {
					Address string
					Port    int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return "", "", fmt.Errorf("admin /listeners: %w", err)
	}
	for _, status := range page.Statuses {
		address := net.JoinHostPort(status.Local.Socket.Address, strconv.Itoa(status.Local.Socket.Port))
		if status.Name == StatsListener {
			stats = address
		} else if requests == "" {
			requests = address
		}
	}
	if requests == "" {
		return "", "", fmt.Errorf("admin /listeners: no listener: %s", body)
	}
	return requests, stats, nil
}
