package kube

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// During an outage the service account was re-created. Its old token is invalid, and the file has the new one: with
// that Weir goes on.
func TestATokenChangesDuringAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	proxy, kubeconfig := w.behindFaults()
	token := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(w.env.Token(t, w.namespace, "weir"))
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{TokenFile: token}
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		t.Fatal(err)
	}
	e := w.eppWith(kubeconfig, "--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000")
	proxy.begin(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) })
	accounts := w.env.Clients().CoreV1().ServiceAccounts(w.namespace)
	if err := accounts.Delete(t.Context(), "weir", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	write(w.env.Token(t, w.namespace, "weir")) // of another account of the name
	w.pod("b", "10.0.0.2", true)
	proxy.end()
	e.want("10.0.0.1:8000", "10.0.0.2:8000")
	e.wantMetric(`weir_kubernetes_apiserver_up{pool="chat"}`, 1)
}
