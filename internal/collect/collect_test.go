package collect

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Each planted secret contains this text.
const planted = "PLANTED"

const key = "team-" + planted + "-0123456789"

// pages are those of an epp, of its metrics port and of an Envoy, with secrets in all possible places.
func pages(hashed bool) map[string]string {
	d := status.Document{
		Schema: status.Schema, Pool: status.Pool{Profile: "recommended", Hashed: hashed, Leads: true},
		Flows:      []status.Flow{{Flow: key, Tier: "default", Waiting: 3}, {Flow: "anonymous"}, {Flow: "other"}},
		Engines:    []status.Engine{{Address: "10.0.0.1:8000"}},
		Rejections: []status.Rejection{{Flow: key, Outcome: "flow-full", Limit: "flow-capacity", Holders: []status.Holder{{Flow: key, Held: 3}}, Text: "Authorization: Bearer " + planted + "abcdef was refused"}},
	}
	text, err := d.Encode()
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"/debug/status": string(text),
		"/statusz":      "configuration /etc/weir.yaml\nproxy http://user:" + planted + "@10.0.0.1/\n",
		"/debug/flows":  `{"queued": 3, "waiting": [{"flow": "` + key + `", "tier": "default", "waiting": 3, "weight": 0.5}]}`,
		"/debug/rejections": `[{"flow": "` + key + `", "id": "r-1", "outcome": "flow-full",
			"limit": {"name": "flow-capacity", "value": 3, "holders": [{"flow": "` + key + `", "held": 3}]}}]`,
		"/debug/recording": "WEIR\x00\x01" + key,
		"/debug/config": "# /etc/weir.yaml, in use\n# THE NEWEST CONFIGURATION IS INVALID and not in use:\n#   flows.weights." + key + ": must be positive\n" +
			"profile: recommended\nflows:\n  weights:\n    " + key + ": 3\n    anonymous: 0.1\n  capacities: { " + key + ": 7 }\n" +
			"  levels: [ { key: [ model ], weights: { " + key + ": 3 } }, { key: [ model ], capacities: { " + key + ": 3 } } ]\ndecisions: { explain: [ " + key + " ] }\n" +
			"tenantPolicies: { " + key + ": { class: default } }\nscheduling: { affinitySeed: seed-" + planted + ", affinity: prefix }\n",
		"/metrics": "# HELP weir_flow_queue_length x\nweir_flow_queue_length{flow=\"" + key + "\"} 3\n" +
			`weir_flow_tokens_total{flow="a\"` + planted + `\\",kind="input",model="m"} 7` + "\nweir_queue_length{model=\"m\"} 3\n",
		"/config_dump": `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "static_secrets": [],
			"typed_config": {"@type": "x", "message_timeout": "2s", "max_tokens": 5, "token_bucket": {"max_tokens": 7}},
			"request_headers_to_add": [{"header": {"key": "Authorization", "value": "Basic ` + planted + `"}}, {"header": {"key": "x-api-key", "value": "` + planted + `"}},
				{"header": {"key": "x-tier", "value": "default"}}],
			"headers": [{"name": "x-weir-token", "string_match": {"exact": "` + planted + `"}}, {"name": ":path", "string_match": {"prefix": "/v1"}}],
			"lua": {"inline_string": "local key = '` + planted + `'"}, "users": {"inline_bytes": "` + planted + `"},
			"oauth2": {"client_secret": {"value": ["` + planted + `"]}, "hmac": "` + planted + `"}, "uri": "https://admin:` + planted + `@host/",
			"jwt": "eyJhbGciOiJIUzI1NiJ9.` + planted + `.sig", "cluster_name": "weir", "endpoint": {"address": "10.0.0.1", "port_value": 8000}}]}`,
	}
}

// recorded returns a recording with a request of the tenant that the configuration names, too.
func recorded(t *testing.T) string {
	t.Helper()
	format, err := recording.NewFormat(placement.On(nil))
	if err != nil {
		t.Fatal(err)
	}
	cfg := dispatch.DefaultConfig()
	cfg.Queue.Weights = map[string]fairqueue.Weight{key: fairqueue.WeightOne}
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	board := scheduling.NewBoard(scheduler, nil)
	m, err := dispatch.New(cfg, placement.On(board), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := format.New(cfg, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	now, refusal := time.Unix(1_800_000_000, 0), dispatch.Refusal{ID: "r-1", Flow: key, Model: "m", Outcome: dispatch.OutcomeUnknownModel}
	if err := r.Begin(now, m, board, cfg, nil); err != nil {
		t.Fatal(err)
	}
	refusal.RetryAfter = m.Refuse(now, refusal.Outcome)
	r.Refuse(now, &refusal)
	r.Seal()
	file, err := r.Bytes()
	if err != nil || !bytes.Contains(file, []byte(key)) {
		t.Fatalf("%v, or the name is not in it", err)
	}
	return string(file)
}

func serve(t *testing.T, pages map[string]string) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, is := pages[r.URL.Path]
		if !is {
			http.Error(w, "nothing is recorded", http.StatusNotFound)
			return
		}
		if r.URL.Path == "/config_dump" && r.URL.RawQuery != "include_eds" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// collected returns the files of the tar, and the tar itself.
func collected(t *testing.T, o *Options) (files map[string]string, whole string) {
	t.Helper()
	if o.Bounded == nil {
		o.Bounded = func(_ int, replay func() error) error { return replay() }
	}
	found, reached := Collect(t.Context(), o)
	if !reached {
		t.Fatal("not reached")
	}
	var b bytes.Buffer
	if err := Write(&b, found, o.Names, "v1", time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	whole, files = b.String(), map[string]string{}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, whole
		}
		if err != nil || h.Mode != 0o600 {
			t.Fatalf("%v, %v", h, err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "weir-collect/")] = string(text)
	}
}

// The tar has no secret from a name, a value or a comment of a page, and everything else.
func TestNothingSecretIsCollected(t *testing.T) {
	for _, hashed := range []bool{false, true} {
		all := pages(hashed)
		all["/debug/recording"] = recorded(t)
		address := serve(t, all)
		files, whole := collected(t, &Options{Addresses: []string{address}, Metrics: []string{address}, Envoy: []string{address}})
		if i := strings.Index(whole, planted); i >= 0 {
			t.Errorf("the tar has …%s…", whole[max(0, i-100):min(len(whole), i+50)])
		}
		hash := request.HashedFlowName(key)
		for file, want := range map[string][]string{
			"replica-1/status.json":     {`"flow": "` + hash, `"anonymous"`, `"other"`, `"waiting": 3`, "10.0.0.1:8000", "[redacted] was refused"},
			"replica-1/statusz.txt":     {"configuration /etc/weir.yaml", "10.0.0.1"},
			"replica-1/flows.json":      {`"flow": "` + hash, `"weight": 0.5`},
			"replica-1/rejections.json": {`"flow": "` + hash, `"flow-full"`, `"name": "flow-capacity"`, `"held": 3`},
			"replica-1/config.yaml":     {hash + ": 3", hash + ": 7", "anonymous: 0.1", "affinity: prefix", "affinitySeed: '[redacted]'", "# 3 lines of comments were left out"},
			"metrics-1.txt":             {`weir_flow_queue_length{flow="` + hash + `"} 3`, `kind="input",model="m"} 7`, `weir_queue_length{model="m"} 3`},
			"envoy-1/config_dump.json":  {`"message_timeout": "2s"`, `"max_tokens": 7`, `"value": "default"`, `"prefix": "/v1"`, `"key": "Authorization"`, `"cluster_name": "weir"`, `"port_value": 8000`},
			"manifest.json":             {`"weir": "v1"`, `"flowNames": false`, `"name": "replica-1/config.yaml"`},
			"replica-1/recording":       {"weir recording", hash, "r-1"},
		} {
			for _, w := range want {
				if !strings.Contains(files[file], w) {
					t.Errorf("hashed %t: %s lacks %s:\n%s", hashed, file, w, files[file])
				}
			}
		}
		format, err := recording.NewFormat(placement.On(nil))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := format.Replay(strings.NewReader(files["replica-1/recording"])); err != nil || s.Events != 1 {
			t.Errorf("a replay of the collected recording: %+v, %v", s, err)
		}
	}
}

// With names allowed, names stay, in the recording too. Other secrets do not.
func TestCollectNames(t *testing.T) {
	address := serve(t, pages(false))
	files, _ := collected(t, &Options{Addresses: []string{address}, Metrics: []string{address}, Envoy: []string{address}, Names: true})
	for file, want := range map[string]bool{"replica-1/status.json": true, "replica-1/config.yaml": true, "replica-1/recording": true, "metrics-1.txt": true, "envoy-1/config_dump.json": false} {
		if strings.Contains(files[file], key) != want {
			t.Errorf("%s has the name: %t", file, !want)
		}
	}
	if strings.Contains(files["replica-1/config.yaml"], "seed-") || strings.Contains(files["envoy-1/config_dump.json"], planted) {
		t.Error("a secret is there")
	}
}

// A missing, wrong or oversized page is listed with its reason, and the other pages are there.
func TestCollectWhatIsThere(t *testing.T) {
	all := pages(true)
	delete(all, "/debug/recording")
	all["/debug/config"], all["/config_dump"] = "{", "Bearer "+planted+"abcdef"
	address := serve(t, all)
	closed := httptest.NewServer(nil)
	closed.Close()
	gone := strings.TrimPrefix(closed.URL, "http://")
	files, whole := collected(t, &Options{Addresses: []string{address, gone}, Envoy: []string{address}})
	var m manifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil {
		t.Fatal(err)
	}
	errs := map[string]string{}
	for _, f := range m.Files {
		errs[f.Name] = f.Err
	}
	for name, want := range map[string]string{
		"replica-1/status.json": "", "replica-1/flows.json": "", "replica-1/recording": "404 Not Found: nothing is recorded",
		"replica-1/config.yaml": "no YAML", "envoy-1/config_dump.json": "no JSON", "replica-2/status.json": "refused", "replica-2/recording": "refused",
	} {
		if got := errs[name]; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if strings.Contains(whole, planted) {
		t.Error("a secret is there")
	}
	cut := recorded(t)
	address = serve(t, map[string]string{"/debug/status": pages(false)["/debug/status"], "/debug/recording": cut[:len(cut)-1]})
	if files, whole := collected(t, &Options{Addresses: []string{address}}); !strings.Contains(files["manifest.json"], "left out, since hashes cannot replace") || strings.Contains(whole, planted) {
		t.Errorf("a recording that cannot be read: %s", files["manifest.json"])
	}
	address = serve(t, map[string]string{"/debug/status": pages(false)["/debug/status"], "/debug/recording": recorded(t)})
	forged := func(size int, _ func() error) error { return fmt.Errorf("%d bytes take too long", size) }
	if files, _ := collected(t, &Options{Addresses: []string{address}, Bounded: forged}); !strings.Contains(files["manifest.json"], "bytes take too long") || files["replica-1/status.json"] == "" {
		t.Errorf("a recording beyond the bounds: %s", files["manifest.json"])
	}
	if _, reached := Collect(t.Context(), &Options{Addresses: []string{gone}}); reached {
		t.Error("a closed port was reached")
	}
}

// The tar names of many replicas differ.
func TestSources(t *testing.T) {
	o := Options{Addresses: []string{"a:1", "b:1"}, Metrics: []string{"a:2", "b:2"}, Envoy: []string{"e:1"}}
	seen := map[string]bool{}
	for _, s := range o.sources() {
		if seen[s.file] {
			t.Errorf("%s is there twice", s.file)
		}
		seen[s.file] = true
	}
	if len(seen) != 15 {
		t.Error(fmt.Sprint(seen))
	}
}

// Nothing from behind an epp's redirection is in the tar, and errors from the epp do not control a terminal.
func TestCollectFollowsNobody(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was followed") }))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/statusz" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "\x1b[2J\u009b31m")
	}))
	t.Cleanup(s.Close)
	files, _ := Collect(t.Context(), &Options{Addresses: []string{strings.TrimPrefix(s.URL, "http://")}})
	for _, f := range files {
		if f.Err == "" || strings.ContainsAny(f.Err, "\x1b\u009b") || f.Name == "replica-1/statusz.txt" && !strings.Contains(f.Err, "302 Found") {
			t.Errorf("%s: %+q", f.Name, f.Err)
		}
	}
}
