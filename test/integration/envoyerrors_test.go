package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Clients can read Envoy's own errors: each has the form of OpenAI's API, in every shipped file.
func TestErrorsOfEnvoy(t *testing.T) {
	t.Parallel()
	for _, config := range envoyrun.Shipped() {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{
				envoys: []string{config}, noEPP: config == "direct", models: []modelsim.Config{modelsim.Fixed(8, time.Millisecond)},
				edit: func(b envoyrun.Bootstrap) error {
					b.Route()["timeout"] = "5s" // in which every other answer comes
					return nil
				},
			})
			s.models[0].Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
			wantEnvoysError(t, s.send(ask{}), 504, "timeout")
			wantServed(t, "an answer that is no error", s.send(ask{}))
			s.models[0].Close()
			wantEnvoysError(t, s.send(ask{}), 503, "unavailable")
			wantEnvoysError(t, s.send(ask{method: "GET", path: "/v1/models"}), 503, "unavailable")
			if s.epp == nil {
				return
			}
			s.epp.kill()
			wantEnvoysError(t, s.send(ask{}), 503, "unavailable") // because the filter fails closed, or for lack of a server
		})
	}
}

// Weir's own rejections arrive unchanged, whatever their status and form: local_reply_config changes nothing in them
// but the Retry-After.
func TestWeirsRejectionsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	bare := func(b envoyrun.Bootstrap) error { delete(b.ConnectionManager(), "local_reply_config"); return nil }
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			t.Parallel()
			config := single + "fairRequestQueue: { totalCapacity: 1, flowCapacity: 1 }\nlimits: { maxBodyBytes: 10000 }\n"
			v := newValve()
			shaped := start(t, setup{envoys: []string{m.config}, config: config, models: v.one()})
			plain := start(t, setup{envoys: []string{m.config}, config: config, models: v.one(), edit: bare})
			for _, s := range []*scene{shaped, plain} {
				s.begin(ask{})
				s.epp.waitFor(1, "weir_stock_level")
				s.begin(ask{})
				s.epp.waitFor(1, "weir_queue_length")
			}
			for name, a := range map[string]ask{
				"a full queue":                    {},
				"a full queue, Anthropic's shape": {path: "/v1/messages"},
				"no model":                        {body: `{"messages":[]}`},
				"no JSON":                         {path: "/v1/messages", body: "hello"},
				"a large body":                    {body: `{"model":"tiny","x":"` + strings.Repeat("x", 20000) + `"}`},
			} {
				got, want := shaped.send(a), plain.send(a)
				if got.err != nil || got.status != want.status || got.status < 400 || got.body != want.body || got.reason() == "" {
					t.Errorf("%s: got %d %q %v, want %d %q", name, got.status, got.body, got.err, want.status, want.body)
				}
				for _, timed := range []string{"Date", "Retry-After", "Retry-After-Ms"} {
					if (got.header.Get(timed) == "") != (want.header.Get(timed) == "") {
						t.Errorf("%s: %s is %q, want %q", name, timed, got.header.Get(timed), want.header.Get(timed))
					}
					got.header.Del(timed)
					want.header.Del(timed)
				}
				for header := range want.header {
					if got.header.Get(header) != want.header.Get(header) {
						t.Errorf("%s: %s is %q, want %q", name, header, got.header.Get(header), want.header.Get(header))
					}
				}
				if len(got.header) != len(want.header) {
					t.Errorf("%s: headers are %v, want %v", name, got.header, want.header)
				}
			}
			v.open()
		})
	}
}

// wantEnvoysError checks that an answer is an error of Envoy's own in the form of OpenAI's API.
func wantEnvoysError(t *testing.T, got answer, status int, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	err := json.Unmarshal([]byte(got.body), &e)
	if got.err != nil || err != nil || got.status != status || got.reason() != "" || e.Error.Code != code ||
		e.Error.Message == "" || e.Error.Type == "" || got.header.Get("content-type") != "application/json" {
		t.Errorf("got %d %q %.300q (%v, %v), want Envoy's own %d with the code %q",
			got.status, got.reason(), got.body, got.err, err, status, code)
	}
}

// withUploads returns the path of a copy of recommended.yaml with its commented-out route for uploads enabled.
func withUploads(t *testing.T) string {
	t.Helper()
	return uncommented(t, "recommended", "- match: { path: /v1/files }")
}

// uncommented returns the path of a copy of a shipped file in which commented-out parts are enabled. Each begins with the
// given line and ends with the comment that it is in.
func uncommented(t *testing.T, config string, parts ...string) string {
	t.Helper()
	shipped, err := os.ReadFile("../../config/envoy/" + config + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(shipped), "\n")
	for _, part := range parts {
		taken := 0
		for i, line := range lines {
			begin := strings.Index(line, "# ")
			if begin < 0 || strings.TrimSpace(line[:begin]) != "" {
				continue
			}
			if begins := strings.HasPrefix(line[begin:], "# "+part); begins || taken > 0 && i == taken+1 {
				lines[i], taken = line[:begin]+line[begin+2:], i
			}
		}
		if taken == 0 {
			t.Fatalf("%s.yaml has no commented %q", config, part)
		}
	}
	path := filepath.Join(t.TempDir(), config+".yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
