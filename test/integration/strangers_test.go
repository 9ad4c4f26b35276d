package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// strangersConfig is the profile recommended with one slot and everything that a header could influence: an objective's
// class, and a request's cost.
const strangersConfig = `
profile: recommended
cost: requests
requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }
objectives: [ { name: vip, priority: 10 } ]
trustedHeaders: { cost: x-weir-cost }
`

// forgery returns every header with a client's claims about itself, with a new name each time.
func forgery(i int) []string {
	name := fmt.Sprintf("vip-%d", i)
	return []string{
		"x-llm-d-inference-fairness-id", name, "x-gateway-inference-fairness-id", name,
		"x-llm-d-inference-objective", "vip", "x-gateway-inference-objective", "vip",
		"x-gateway-model-name", name, "x-weir-cost", "900", "x-llm-d-slo-ttft-ms", "1",
		"x-envoy-expected-rq-timeout-ms", "1",
	}
}

// waitingFlow is an entry for a flow in /debug/flows.
type waitingFlow struct {
	Flow, Tier           string
	Waiting, WaitingCost int
}

// waitingFlows returns the flows that wait, by name.
func (e *epp) waitingFlows() []waitingFlow {
	e.t.Helper()
	var page struct{ Waiting []waitingFlow }
	if err := json.Unmarshal([]byte(expect.Page(e.t, e.DebugURL+"/debug/flows")), &page); err != nil {
		e.t.Fatal(err)
	}
	slices.SortFunc(page.Waiting, func(a, b waitingFlow) int { return slices.Compare([]byte(a.Flow), []byte(b.Flow)) })
	return page.Waiting
}

// A client claims an identity, an urgency, a model and a cost in every header, under a new name each time. It is still
// one flow in the middle tier, and pays the same as others. If tenants are authenticated, another tenant waits for at
// most one of its requests.
func TestClientsThatForgeWhoTheyAre(t *testing.T) {
	t.Parallel()
	const forged = 8
	for config, test := range map[string]struct {
		flow    string // of the forging client
		another string // the authorization of another tenant; "" if there is only one tenant
	}{
		"recommended": {"tiny/tiny", ""},
		"fail-closed": {"tiny/tiny", ""},
		"gate":        {"tiny/tiny", ""},
		"full-duplex": {"tiny/tiny", ""},
		"api-keys":    {"team-a", "Bearer " + keyOfTeamB},
		"jwt":         {"alice", "Bearer " + token(t, issuer(), "bob")},
	} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			v := newValve()
			s := start(t, setup{
				envoys: []string{config}, strange: true, config: strangersConfig,
				models: []modelsim.Config{v.on(recorded(1))},
			})
			plug := s.begin(ask{})
			s.epp.waitFor(1, "weir_stock_level")
			crowd := make([]*pending, forged)
			for i := range crowd {
				crowd[i] = s.begin(ask{header: append(forgery(i), "x-tenant", "forger")})
			}
			s.epp.waitFor(forged, "weir_queue_length")
			want := []waitingFlow{{Flow: test.flow, Tier: "default", Waiting: forged, WaitingCost: forged}}
			if got := s.epp.waitingFlows(); !slices.Equal(got, want) {
				t.Errorf("the waiters are %+v, want %+v", got, want)
			}
			if n := s.epp.value("weir_queue_length", "model", "vip-0"); n != 0 {
				t.Errorf("%v wait for a model that only a header names", n)
			}

			var quiet *pending
			if test.another != "" {
				quiet = s.begin(ask{header: []string{"authorization", test.another, "x-tenant", "quiet"}})
				s.epp.waitFor(forged+1, "weir_queue_length")
			}
			v.open()
			wantServed(t, "the first", plug.wait())
			for _, p := range crowd {
				wantServed(t, "a forger's", p.wait())
			}
			if quiet != nil {
				wantServed(t, "the quiet tenant's", quiet.wait())
				// After the plug, and at most one of the forger's.
				if order := tenants(s.models[0]); !slices.Contains(order[1:3], "quiet") {
					t.Errorf("served were %q: the quiet tenant waited for more than one of the forger's", order)
				}
			}
			s.epp.settled()
			for _, r := range s.models[0].Records() {
				if r.Header.Get("authorization") != "" {
					t.Errorf("the client's credentials went on to the model server")
				}
			}
		})
	}
}

// A client without a key, with an unknown key, or with a token signed by another key gets 401 from Envoy, without Weir.
func TestStrangersAreTurnedAway(t *testing.T) {
	t.Parallel()
	impostor, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for config, wrong := range map[string]string{"api-keys": "Bearer guessed", "jwt": "Bearer " + token(t, impostor, "alice")} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{config}, strange: true, config: strangersConfig})
			for _, authorization := range []string{"", wrong, "Basic " + keyOfTeamA} {
				wantEnvoysError(t, s.send(ask{header: append(forgery(1), "authorization", authorization)}), 401, "unauthenticated")
			}
			if n := s.epp.value("weir_requests_total"); n != 0 {
				t.Errorf("%v of them came to Weir", n)
			}
			if n := s.epp.value("weir_extproc_streams_total") + s.extProc("streams_started"); n != 0 {
				t.Errorf("%v streams came to Weir, if only with Envoy's answers", n)
			}
			wantServed(t, "one who is known", s.send(ask{}))
		})
	}
}

// A token from the right issuer is rejected too if it is for another service, never expires or has expired. So is one
// from another issuer.
func TestTokensForOthersAreTurnedAway(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"jwt"}, strange: true, config: strangersConfig})
	hour := time.Now().Add(time.Hour).Unix()
	for _, test := range []struct {
		name   string
		claims map[string]any
		status int
		code   string
	}{
		{"another audience", map[string]any{"iss": "https://issuer.example", "aud": "billing", "sub": "alice", "exp": hour}, 403, "forbidden"},
		{"no audience", map[string]any{"iss": "https://issuer.example", "sub": "alice", "exp": hour}, 403, "forbidden"},
		{"without an end", map[string]any{"iss": "https://issuer.example", "aud": "inference", "sub": "alice"}, 401, "unauthenticated"},
		{"ended", map[string]any{"iss": "https://issuer.example", "aud": "inference", "sub": "alice", "exp": hour - 7200}, 401, "unauthenticated"},
		{"another issuer", map[string]any{"iss": "https://other.example", "aud": "inference", "sub": "alice", "exp": hour}, 401, "unauthenticated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := s.send(ask{header: []string{"authorization", "Bearer " + signed(t, issuer(), test.claims)}})
			wantEnvoysError(t, got, test.status, test.code)
		})
	}
	wantServed(t, "one who is known", s.send(ask{}))
}

// Keys change without a restart when the file is replaced.
func TestKeysAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "api-keys.yaml")
	shipped, err := os.ReadFile("../../config/envoy/auth/api-keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, shipped, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{envoys: []string{"api-keys"}, strange: true, edit: func(b envoyrun.Bootstrap) error {
		for _, entry := range envoyrun.List(b.ConnectionManager(), "http_filters") {
			filter := envoyrun.Object(entry)
			if filter["name"] != envoyrun.APIKeyFilter {
				continue
			}
			source := envoyrun.Object(filter, "config_discovery", "config_source", "path_config_source")
			source["path"], source["watched_directory"] = file, map[string]any{"path": dir}
		}
		return nil
	}})
	key := func(key string) ask { return ask{header: []string{"authorization", "Bearer " + key}} }
	wantServed(t, "the old key", s.send(key(keyOfTeamA)))
	expect.Replaced(t, file, strings.ReplaceAll(string(shipped), keyOfTeamA, "another-key"))
	expect.True(t, "the new key is known", func() bool { return s.send(key("another-key")).status == http.StatusOK })
	wantEnvoysError(t, s.send(key(keyOfTeamA)), 401, "unauthenticated")
	wantServed(t, "a key that stayed", s.send(key(keyOfTeamB)))
}
