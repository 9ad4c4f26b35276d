package kubeenv

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-epp/weir/internal/expect"
)

func TestMain(m *testing.M) {
	os.Exit(Run(m.Run))
}

func clientsOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

const readerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
  - {kind: ServiceAccount, name: reader}
`

// A service account has exactly the permissions of its Role. Each of its requests is recorded.
func TestServiceAccountsHaveTheirRolesOnly(t *testing.T) {
	env := Shared(t)
	namespace := env.Namespace(t)
	user := ServiceAccountUser(namespace, "reader")
	pods := clientsOf(t, env.As(t, namespace, "reader")).CoreV1().Pods(namespace)
	if _, err := pods.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("without a Role: %v", err)
	}
	env.Apply(t, namespace, readerRole)
	expect.True(t, "with a Role, pods are listed", func() bool {
		_, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=x", FieldSelector: "spec.nodeName=n"})
		return err == nil
	})
	if _, err := pods.Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("a verb that the Role lacks: %v", err)
	}
	watch, err := pods.Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=y"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	type asked struct {
		verb, resource, namespace, name, labels, fields string
		code                                            int
	}
	for _, want := range []asked{
		{"list", "pods", namespace, "", "", "", 403},
		{"list", "pods", namespace, "", "app=x", "spec.nodeName=n", 200},
		{"get", "pods", namespace, "none", "", "", 403},
		{"watch", "pods", namespace, "", "app=y", "", 200}, // it still runs
	} {
		expect.True(t, fmt.Sprintf("%+v is on record", want), func() bool {
			return slices.ContainsFunc(env.Requests(t, user), func(r Request) bool {
				return asked{r.Verb, r.Resource, r.Namespace, r.Name, r.LabelSelector, r.FieldSelector, r.Code} == want
			})
		})
	}
	for _, r := range env.Requests(t, user) {
		if r.User != user || r.Group != "" || r.Path == "" || r.Agent == "" || time.Since(r.Received) > 5*time.Minute {
			t.Errorf("on record for %s: %+v", user, r)
		}
	}
	watch.Stop()
	expect.True(t, "the log has the end of the watch", func() bool {
		log, err := os.ReadFile(env.auditLog())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(strings.Split(string(log), "\n"), func(line string) bool {
			return strings.Contains(line, user) && strings.Contains(line, `"verb":"watch"`) &&
				strings.Contains(line, `"stage":"ResponseComplete"`)
		})
	})
	watches := 0
	for _, r := range env.Requests(t, user) {
		if r.Verb == "watch" {
			watches++
		}
	}
	if watches != 1 {
		t.Errorf("one watch is on record %d times", watches)
	}
}

// Tokens are the apiserver's own, so it can name their owners.
func TestTokens(t *testing.T) {
	env := Shared(t)
	namespace := env.Namespace(t)
	review := &authenticationv1.TokenReview{}
	review.Spec.Token = env.Token(t, namespace, "robot")
	review, err := env.Clients().AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := ServiceAccountUser(namespace, "robot")
	if got := review.Status.User.Username; !review.Status.Authenticated || got != want {
		t.Errorf("the token is %q's, want %q", got, want)
	}
}

// A kubeconfig file names its user and namespace. The directory is a pod's own.
func TestKubeconfig(t *testing.T) {
	env := Shared(t)
	namespace := env.Namespace(t)
	for name, config := range map[string]*rest.Config{
		"admin":                                  env.Admin(),
		ServiceAccountUser(namespace, "someone"): env.As(t, namespace, "someone"),
	} {
		path := env.Kubeconfig(t, config, namespace)
		loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, nil)
		if got, _, err := loaded.Namespace(); err != nil || got != namespace {
			t.Errorf("namespace %q, %v", got, err)
		}
		own, err := loaded.ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		whoami, err := clientsOf(t, own).AuthenticationV1().SelfSubjectReviews().
			Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || whoami.Status.UserInfo.Username != name {
			t.Errorf("the apiserver takes %s for %q: %v", name, whoami.Status.UserInfo.Username, err)
		}
	}
	dir := env.ServiceAccountDir(t, namespace, "someone")
	for _, file := range []string{"token", "ca.crt", "namespace"} {
		if text, err := os.ReadFile(dir + "/" + file); err != nil || len(text) == 0 {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: model}
spec:
  nodeName: nowhere
  containers: [{name: model, image: none}]
`

// There is no kubelet: a pod has the status set by the test. With a node it terminates until the test ends it, as on a
// node that does not answer.
func TestPodsAreTheTests(t *testing.T) {
	env := Shared(t)
	namespace := env.Namespace(t)
	env.Apply(t, namespace, pod)
	pods := env.Clients().CoreV1().Pods(namespace)
	status := []byte(`{"status":{"podIP":"127.1.2.3","podIPs":[{"ip":"127.1.2.3"}],
		"conditions":[{"type":"Ready","status":"True"}]}}`)
	got, err := pods.Patch(t.Context(), "model", types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.PodIP != "127.1.2.3" || got.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("status is %+v", got.Status)
	}
	if err := pods.Delete(t.Context(), "model", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err = pods.Get(t.Context(), "model", metav1.GetOptions{}); err != nil || got.DeletionTimestamp == nil {
		t.Errorf("a deleted pod: %v, %v", got.DeletionTimestamp, err)
	}
	if err := pods.Delete(t.Context(), "model", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "model", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod whose end is certain: %v", err)
	}
}

// Manifests are checked strictly; a dry run changes nothing and names every fault.
func TestApplyIsStrict(t *testing.T) {
	env := Shared(t)
	namespace := env.Namespace(t)
	const wrong = `
apiVersion: v1
kind: ConfigMap
metadata: {name: typo}
dta: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Capitals}
---
# an empty document is none
---
apiVersion: v1
kind: ConfigMap
metadata: {name: right}
data: {a: b}
`
	if err := env.TryApply(t.Context(), namespace, wrong); err == nil || !strings.Contains(err.Error(), "dta") {
		t.Errorf("applied: %v", err)
	}
	err := env.DryRun(t.Context(), namespace, wrong)
	if err == nil || !strings.Contains(err.Error(), "dta") || !strings.Contains(err.Error(), "Capitals") {
		t.Errorf("dry run: %v", err)
	}
	_, err = env.Clients().CoreV1().ConfigMaps(namespace).Get(t.Context(), "right", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the dry run left something: %v", err)
	}
	if err := env.TryApply(t.Context(), namespace, "{"); err == nil {
		t.Error("no error for a text that is not YAML")
	}
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.kubeenv.example}
spec:
  group: kubeenv.example
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}
status: {acceptedNames: {kind: "", plural: ""}, conditions: null, storedVersions: null}
`

// A definition is in use when InstallCRDs returns, and can be installed again.
func TestInstallCRDs(t *testing.T) {
	env := Shared(t)
	namespace := env.Namespace(t)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/things.yaml", []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		env.InstallCRDs(t, dir)
		env.Apply(t, namespace, "{apiVersion: kubeenv.example/v1, kind: Thing, metadata: {name: one}, size: 1}")
	}
	err := env.TryApply(t.Context(), namespace,
		"{apiVersion: kubeenv.example/v1, kind: Thing, metadata: {name: two}, size: big}")
	if err == nil || !strings.Contains(err.Error(), "size") {
		t.Errorf("against its schema: %v", err)
	}
}

// Without the programs, the error has the command to get them.
func TestNoAssets(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	if _, err := Assets(); !errors.Is(err, ErrNoAssets) || !strings.Contains(err.Error(), "make test-kube-assets") {
		t.Errorf("error is %v", err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Chdir(t.TempDir())
	if _, err := Assets(); !errors.Is(err, ErrNoAssets) {
		t.Errorf("outside of the repository: %v", err)
	}
}
