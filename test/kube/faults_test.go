package kube

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// faulty is a proxy before the apiserver, which may answer in its place.
type faulty struct {
	server *httptest.Server
	fault  atomic.Pointer[http.HandlerFunc] // nil: the apiserver answers
	asked  atomic.Int64                     // requests that the fault answered
}

// behindFaults returns a proxy, and a kubeconfig file for epp to reach the apiserver through it.
func (w *world) behindFaults() (f *faulty, kubeconfig string) {
	w.t.Helper()
	as := w.env.As(w.t, w.namespace, "weir")
	target, err := url.Parse(as.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1 // watches are streams
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	if proxy.Transport, err = rest.TransportFor(&rest.Config{Host: as.Host, TLSClientConfig: as.TLSClientConfig}); err != nil {
		w.t.Fatal(err)
	}
	f = &faulty{}
	f.server = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if fault := f.fault.Load(); fault != nil {
			f.asked.Add(1)
			(*fault)(out, r)
			return
		}
		proxy.ServeHTTP(out, r)
	}))
	w.t.Cleanup(f.server.Close)
	w.t.Cleanup(f.server.CloseClientConnections)
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are cut
	as.Host, as.CAData = f.server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
	return f, w.env.Kubeconfig(w.t, as, w.namespace)
}

// begin makes the proxy answer with a fault from now on, watches included.
func (f *faulty) begin(fault http.HandlerFunc) {
	f.asked.Store(0)
	f.fault.Store(&fault)
	f.server.CloseClientConnections()
}

// end makes the apiserver answer again.
func (f *faulty) end() { f.fault.Store(nil) }

// A permission removed while Weir runs is reported at its next use, by name. Weir keeps its knowledge.
func TestAPermissionIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	proxy, kubeconfig := w.behindFaults()
	e := w.eppWith(kubeconfig, "--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000")
	missing := fmt.Sprintf(`weir_kubernetes_permission_missing{namespace=%q,pool="chat",resource="pods",verb="watch"}`, w.namespace)
	e.wantMetric(missing, 0)
	w.apply(strings.ReplaceAll(role, "[pods], verbs: [list, watch]", "[pods], verbs: [list]"))
	proxy.server.CloseClientConnections() // a watch that has begun goes on for some minutes
	e.wantMetric(missing, 1)
	e.logs("A PERMISSION IS MISSING")
	w.pod("b", "10.0.0.2", true)
	if !e.serving("readiness") {
		t.Error("not ready")
	}
	e.want("10.0.0.1:8000")
	w.apply(role)
	e.want("10.0.0.1:8000", "10.0.0.2:8000")
	e.wantMetric(missing, 0)
}

// For a while the apiserver, or a proxy before it, gives any faulty answer. The known pods stay, Weir's requests are
// limited in rate, and changes arrive soon after the end of the fault.
func TestFaultsOfTheApiserver(t *testing.T) {
	t.Parallel()
	text := func(status int, kind, body string) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", kind)
			out.WriteHeader(status)
			_, _ = out.Write([]byte(body))
		}
	}
	status := func(code int, reason string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"%s","message":"m","code":%d}`, reason, code)
	}
	const asJSON = "application/json"
	faults := []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"too many requests", text(429, asJSON, status(429, "TooManyRequests"))},
		{"gone", text(410, asJSON, status(410, "Expired"))},
		{"gone, within a watch", text(200, asJSON, `{"type":"ERROR","object":`+status(410, "Expired")+"}\n")},
		{"an internal error", text(500, asJSON, status(500, "InternalError"))},
		{"forbidden", text(403, asJSON, status(403, "Forbidden"))},
		{"unauthorized", text(401, asJSON, status(401, "Unauthorized"))},
		{"a page of a load balancer", text(200, "text/html", "<html>welcome</html>")},
		{"other objects", text(200, asJSON, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"x"}}]}`)},
		{"other objects, within a watch", text(200, asJSON, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}}`+"\n")},
		{"nothing", text(200, asJSON, "")},
		{"half an answer", func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", "1000")
			_, _ = out.Write([]byte(`{"kind":"PodLi`))
			panic(http.ErrAbortHandler)
		}},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.apply(role, pool)
			w.pod("a", "10.0.0.1", true)
			w.pod("b", "10.0.0.2", true)
			proxy, kubeconfig := w.behindFaults()
			e := w.eppWith(kubeconfig, "--pool-name=chat")
			e.ready(true)
			e.want("10.0.0.1:8000", "10.0.0.2:8000")
			proxy.begin(fault.answer)
			time.Sleep(3 * time.Second)
			if n := proxy.asked.Load(); n > 100 {
				t.Errorf("asked %d times in 3 s", n)
			}
			if got := strings.Join(e.endpoints(), " "); !strings.Contains(got, "10.0.0.1:8000") || !strings.Contains(got, "10.0.0.2:8000") {
				t.Errorf("the endpoints are %q", got)
			}
			if !e.serving("readiness") {
				t.Error("not ready")
			}
			w.status("b", "10.0.0.2", false)
			proxy.end()
			proxy.server.CloseClientConnections()
			began := time.Now()
			e.want("10.0.0.1:8000", "10.0.0.2:8000 (not ready)")
			t.Logf("%d requests; caught up after %s", proxy.asked.Load(), time.Since(began))
		})
	}
}
