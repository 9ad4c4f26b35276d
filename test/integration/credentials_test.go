package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
)

// The two keys of config/envoy/auth/api-keys.yaml.
const (
	keyOfTeamA = "example-key-of-team-a"
	keyOfTeamB = "example-key-of-team-b"
)

// issuer signs the tokens for jwt.yaml with the tests' key, which replaces the shipped one.
var issuer = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system's random source never fails
	}
	return key
})

// trustIssuer is an Edit that makes jwt.yaml verify tokens with the tests' key. It does not change other
// configurations.
func trustIssuer(b envoyrun.Bootstrap) error {
	filter := b.Filter(envoyrun.JWTFilter)
	if filter == nil {
		return nil
	}
	keys, err := published(issuer())
	if err != nil {
		return err
	}
	provider := envoyrun.Object(filter, "providers", "issuer")
	provider["local_jwks"] = map[string]any{"inline_string": keys}
	return nil
}

// published returns a key as issuers publish it.
func published(key *ecdsa.PrivateKey) (string, error) {
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	base64url := base64.RawURLEncoding.EncodeToString
	keys, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "x": base64url(point[1:33]), "y": base64url(point[33:]),
	}}})
	return string(keys), err
}

// token returns a token for the subject that jwt.yaml accepts for an hour.
func token(t *testing.T, key *ecdsa.PrivateKey, subject string) string {
	t.Helper()
	return signed(t, key, map[string]any{
		"iss": "https://issuer.example", "aud": "inference", "sub": subject, "exp": time.Now().Add(time.Hour).Unix(),
	})
}

// signed returns a token with these claims.
func signed(t *testing.T, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]any{"alg": "ES256", "typ": "JWT"}) + "." + part(claims)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// credentials returns the authorization header that a shipped configuration requires; "" if it requires none.
func credentials(t *testing.T, config string) string {
	t.Helper()
	switch config {
	case "api-keys":
		return "Bearer " + keyOfTeamA
	case "jwt":
		return "Bearer " + token(t, issuer(), "alice")
	default:
		return ""
	}
}

// authorize adds the credentials that the scene's first Envoy requires to a request, unless it has some.
func (s *scene) authorize(request *http.Request) {
	s.t.Helper()
	if c := credentials(s.t, s.with.envoys[0]); c != "" && request.Header.Get("authorization") == "" {
		request.Header.Set("authorization", c)
	}
}

// authorized returns a with the credentials that its Envoy requires, unless it has some.
func (s *scene) authorized(a ask) ask {
	s.t.Helper()
	for i := 0; i < len(a.header); i += 2 {
		if a.header[i] == "authorization" {
			return a
		}
	}
	if c := credentials(s.t, s.with.envoys[a.envoy]); c != "" {
		a.header = append([]string{"authorization", c}, a.header...)
	}
	return a
}

// Only the header may have a token: in the URL it would be logged. No query is logged, whatever its content.
func TestTokensInTheURL(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"jwt"}})
	valid := token(t, issuer(), "alice")
	const path = "/v1/chat/completions"
	got := send(t.Context(), s.envoy().URL(), ask{path: path + "?access_token=" + valid})
	if got.status != 401 {
		t.Errorf("with a token in the URL only: got %d %v, want 401", got.status, got.err)
	}
	wantServed(t, "with the token in the header too", s.send(ask{path: path + "?access_token=" + valid}))
	for _, status := range []float64{401, 200} {
		if entry := s.logged("status", status); entry["path"] != path {
			t.Errorf("the log has the path %v, want %s", entry["path"], path)
		}
	}
}

// With the commented parts of jwt.yaml instead of the file, Envoy fetches the issuer's keys, and later ones too.
func TestKeysOfTheIssuer(t *testing.T) {
	t.Parallel()
	next, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var key atomic.Pointer[ecdsa.PrivateKey]
	key.Store(issuer())
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys, err := published(key.Load())
		if err != nil || r.URL.Path != "/.well-known/jwks.json" || r.Host != "issuer.example" {
			t.Errorf("Envoy asks for %s at %s: %v", r.URL.Path, r.Host, err)
		}
		_, _ = io.WriteString(w, keys)
	}))
	t.Cleanup(publisher.Close)
	address := publisher.Listener.Addr().(*net.TCPAddr)
	s := start(t, setup{
		envoys: []string{uncommented(t, "jwt", "remote_jwks:", "- name: issuer")},
		edit: func(b envoyrun.Bootstrap) error {
			provider, cluster := envoyrun.Object(b.Filter(envoyrun.JWTFilter), "providers", "issuer"), b.Cluster("issuer")
			delete(provider, "local_jwks")
			envoyrun.Object(provider, "remote_jwks")["cache_duration"] = "1s"
			delete(cluster, "transport_socket") // the publisher of the test has no certificate
			at := envoyrun.Object(cluster, "load_assignment", "endpoints", 0, "lb_endpoints", 0, "endpoint", "address", "socket_address")
			at["address"], at["port_value"] = address.IP.String(), address.Port
			return nil
		},
	})
	by := func(key *ecdsa.PrivateKey) ask {
		return ask{header: []string{"authorization", "Bearer " + token(t, key, "alice")}}
	}
	accepted := func(what string, a ask) {
		t.Helper()
		expect.Eventually(t, what, func() error {
			if got := s.send(a); got.status != 200 {
				return fmt.Errorf("got %d %s", got.status, got.body)
			}
			return nil
		})
	}
	accepted("the issuer's key", by(issuer()))
	wantEnvoysError(t, s.send(by(next)), 401, "unauthenticated")
	key.Store(next)
	accepted("the issuer's next key", by(next))
	wantEnvoysError(t, s.send(by(issuer())), 401, "unauthenticated")
}
