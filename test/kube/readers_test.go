package kube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// readers lets Weir check the readers of its metrics, and the account prometheus read them.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: weir-asks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: weir, namespace: NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reads-metrics}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reads-metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-metrics}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: NAMESPACE}]
`

// A reader of the metrics needs a token known to the apiserver (else 401) and the permission (else 403). An unreachable
// apiserver is Weir's own failure, and then recent readers go on.
func TestReadersOfTheMetrics(t *testing.T) {
	t.Parallel()
	env := kubeenv.Start(t)
	env.InstallCRDs(t, crds())
	w := &world{t: t, env: env, namespace: env.Namespace(t)}
	w.apply(role, pool, strings.ReplaceAll(readers, "NAMESPACE", w.namespace))
	e := w.epp("--pool-name=chat", "--metrics-endpoint-auth=true")
	e.ready(true)
	good, other, late := env.Token(t, w.namespace, "prometheus"), env.Token(t, w.namespace, "somebody"), env.Token(t, w.namespace, "late")

	for what, c := range map[string]struct {
		authorization string
		status        int
		text          string
	}{
		"no token":                    {"", 401, "a bearer token is needed"},
		"an empty token":              {"Bearer  ", 401, "a bearer token is needed"},
		"a password":                  {"Basic YTpi", 401, "a bearer token is needed"},
		"an unknown token":            {"Bearer unknown", 401, "the apiserver does not know the token"},
		"a token that was changed":    {"Bearer " + good[:len(good)-8] + "AAAAAAAA", 401, "the apiserver does not know the token"},
		"a token without permission":  {"Bearer " + other, 403, "system:serviceaccount:" + w.namespace + ":somebody may not get /metrics"},
		"a good token":                {"Bearer " + good, 200, `weir_ready_backends{pool="chat"} 0`},
		"a good token, in lower case": {"bearer " + good, 200, "weir_"},
	} {
		status, text, challenge := e.readMetrics(c.authorization)
		if status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %.200q, want %d %q", what, status, text, c.status, c.text)
		}
		if status != 200 && strings.Contains(text, "weir_") {
			t.Errorf("%s: metrics for a reader without permission", what)
		}
		if got := challenge == "Bearer"; got != (status == 401) {
			t.Errorf("%s: %d with WWW-Authenticate %q", what, status, challenge)
		}
	}
	asked := 0
	for range 20 {
		e.readMetrics("Bearer unknown")
		e.readMetrics("Bearer " + good)
	}
	for _, r := range env.Requests(t, kubeenv.ServiceAccountUser(w.namespace, "weir")) {
		if strings.HasSuffix(r.Resource, "reviews") && r.Resource != "selfsubjectaccessreviews" {
			asked++
		}
	}
	if asked != 6 { // the owners of four tokens, and the permissions of two accounts
		t.Errorf("the apiserver was asked %d times, want 6: it is asked once for each", asked)
	}

	env.StopAPIServer(t)
	for what, c := range map[string]struct {
		authorization string
		status        int
	}{
		"no token":                              {"", 401},
		"a token that it has not seen":          {"Bearer " + late, 503},
		"a token that was unknown a moment ago": {"Bearer unknown", 401},
		"a token that was good a moment ago":    {"Bearer " + good, 200},
		"one without permission":                {"Bearer " + other, 403},
	} {
		if status, text, _ := e.readMetrics(c.authorization); status != c.status {
			t.Errorf("without the apiserver, %s: %d %.200q, want %d", what, status, text, c.status)
		}
	}
	e.logs("cannot ask the apiserver who reads the metrics")
	env.StartAPIServer(t)
	expect.Eventually(t, "once the apiserver is back, it is asked again", func() error {
		if status, text, _ := e.readMetrics("Bearer " + late); status != 403 {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
}

// readMetrics reads the metrics with a header Authorization, unless that is empty.
func (e *epp) readMetrics(authorization string) (status int, text, challenge string) {
	e.t.Helper()
	var header []string
	if authorization != "" {
		header = []string{"Authorization", authorization}
	}
	a := expect.Send(e.t.Context(), http.MethodGet, e.metrics, "", header...)
	if a.Err != nil {
		e.t.Fatal(a.Err)
	}
	return a.Status, a.Body, a.Header.Get("WWW-Authenticate")
}
