package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/status"
)

// Options selects the sources.
type Options struct {
	// Addresses are the replicas' debug ports.
	Addresses []string
	// Metrics and Envoy are the addresses of the metrics ports and of Envoy's admin interfaces; none: these are not collected.
	Metrics, Envoy []string
	// Names leaves the names of flows and tenants unchanged.
	Names bool
	// Bounded calls replay, which reads a recording of size bytes of any origin. It may return an error before replay has
	// ended, if it takes too long or needs too much memory.
	Bounded func(size int, replay func() error) error
}

// File is a file of the tar, or the reason why it is missing.
type File struct {
	Name string `json:"name"`
	From string `json:"from"`
	Err  string `json:"error,omitempty"`
	Size int    `json:"bytes"`
	text []byte
}

// The bounds of one source.
const (
	mostBytes   = 64 << 20
	mostTime    = 30 * time.Second
	errorLength = 300
)

// source is one page.
type source struct {
	file, address, path string
	query               url.Values
	hide                func([]byte) ([]byte, error)
}

// sources returns all pages in order.
func (o *Options) sources() (all []source) {
	names := &hider{names: o.Names, bounded: o.Bounded}
	for i, address := range o.Addresses {
		at := func(file, path string, query url.Values, hide func([]byte) ([]byte, error)) source {
			return source{file: fmt.Sprintf("replica-%d/%s", i+1, file), address: address, path: path, query: query, hide: hide}
		}
		all = append(
			all,
			at("status.json", "/debug/status", url.Values{"engines": {"1000"}, "flows": {"1000"}, "rejections": {"1000"}}, names.json),
			at("statusz.txt", "/statusz", nil, plainly),
			at("flows.json", "/debug/flows", url.Values{"limit": {"1000"}}, names.json),
			at("rejections.json", "/debug/rejections", nil, names.json),
			at("config.yaml", "/debug/config", nil, names.config),
			at("recording", "/debug/recording", nil, names.recording),
		)
	}
	for i, address := range o.Metrics {
		all = append(all, source{file: fmt.Sprintf("metrics-%d.txt", i+1), address: address, path: "/metrics", hide: names.metrics})
	}
	for i, address := range o.Envoy {
		all = append(all, source{
			file: fmt.Sprintf("envoy-%d/config_dump.json", i+1), address: address, path: "/config_dump", query: url.Values{"include_eds": {""}}, hide: envoyDump,
		})
	}
	return all
}

// Collect reads all sources, one after the other. reached is true if at least one epp has returned its status.
func Collect(ctx context.Context, o *Options) (files []File, reached bool) {
	for _, s := range o.sources() {
		f := File{Name: s.file, From: s.address + s.path}
		text, err := s.read(ctx)
		if err == nil && s.path == "/debug/status" {
			var d status.Document
			reached = reached || json.Unmarshal(text, &d) == nil && d.Schema == status.Schema
		}
		if err == nil {
			text, err = s.hide(text)
		}
		if err != nil {
			f.Err = printable.Text(string(credentials([]byte(err.Error()[:min(len(err.Error()), errorLength)]))))
		} else {
			f.text, f.Size = text, len(text)
		}
		files = append(files, f)
	}
	return files, reached
}

func (s *source) read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	return status.Read(ctx, s.address, s.path, s.query, mostBytes)
}
