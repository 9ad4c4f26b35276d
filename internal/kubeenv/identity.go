package kubeenv

import (
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Namespace makes a namespace for the test and returns its name. It also makes the service account default, as a
// controller would.
func (e *Env) Namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	made, err := e.clients.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.serviceAccount(t, made.Name, "default")
	return made.Name
}

func (e *Env) serviceAccount(t *testing.T, namespace, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := e.clients.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// Token returns a service account's token by TokenRequest, valid for an hour. It makes the account if missing. The
// test's Roles and RoleBindings give the account its permissions.
func (e *Env) Token(t *testing.T, namespace, account string) string {
	t.Helper()
	e.serviceAccount(t, namespace, account)
	request, err := e.clients.CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// As returns a configuration for clients that act as a service account, with a Token of it.
func (e *Env) As(t *testing.T, namespace, account string) *rest.Config {
	t.Helper()
	return &rest.Config{
		Host:            e.admin.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: e.admin.CAData},
		BearerToken:     e.Token(t, namespace, account),
		QPS:             -1,
	}
}

// Kubeconfig writes a kubeconfig file for the configuration, with the given current namespace, and returns its path.
func (e *Env) Kubeconfig(t *testing.T, config *rest.Config, namespace string) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["env"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	file.Contexts["env"] = &clientcmdapi.Context{Cluster: "env", AuthInfo: "user", Namespace: namespace}
	file.CurrentContext = "env"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// ServiceAccountDir writes the files of a pod's directory /var/run/secrets/kubernetes.io/serviceaccount for a service
// account, and returns their directory.
func (e *Env) ServiceAccountDir(t *testing.T, namespace, account string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"token": e.Token(t, namespace, account), "ca.crt": string(e.admin.CAData), "namespace": namespace,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
