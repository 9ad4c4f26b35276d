package chart

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/kubeenv"
)

// The objects are applied, and the processes of two replicas start from the Deployment. One of them is ready at once:
// the leader, which has entered itself in the EndpointSlice, so that the Service leads only to it. The follower is not
// "readiness", but "synced".
func TestApplied(t *testing.T) {
	env := cluster(t)
	ns := env.Namespace(t)
	all := render(t, everything)
	deploy(t, env, ns, all)
	modelServer(t, env, ns, "engine-0", "weir.dev/slots: many")
	first := replica(t, env, ns, all)
	begun := time.Now()
	first.await("the only replica is ready", first.serving("readiness"))
	if took := time.Since(begun); took > 12*time.Second { // less than a Lease
		t.Errorf("readiness took %v, want a few seconds", took)
	}
	second := replica(t, env, ns, all)
	second.await("the second replica has synced", second.serving("synced"))
	if status := second.health("readiness"); status != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the follower says readiness %s", status)
	}

	first.await("the Service leads to the leader alone", func() error {
		slice, err := env.Clients().DiscoveryV1().EndpointSlices(ns).Get(t.Context(), "llama-weir", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if e := slice.Endpoints; len(e) != 1 || e[0].Addresses[0] != podIP("127.0.0.1") || e[0].TargetRef.UID != first.pod.UID {
			return fmt.Errorf("it leads to %v", e)
		}
		return nil
	})
	first.await("the model server and the objective are known", func() error {
		for page, want := range map[string]string{"/statusz": "127.0.0.1:8000", "/debug/config": "profile: recommended"} {
			if !strings.Contains(first.debug(page), want) {
				return fmt.Errorf("%s lacks %s:\n%s", page, want, first.debug(page))
			}
		}
		return nil
	})

	first.await("what cannot be used is said in an Event, and what became of the objective in its status", func() error {
		if unheard(first) == nil || unmarked(theirs, "inferenceobjectives", "batch")(first) == nil {
			return errors.New("not yet")
		}
		return nil
	})
	for account, want := range map[string]int{"": http.StatusUnauthorized, "prometheus": http.StatusOK, "somebody": http.StatusForbidden} {
		token := ""
		if account != "" {
			token = env.Token(t, ns, account)
		}
		if status, text := first.scrape(token); status != want {
			t.Errorf("the metrics are %d for the account %q, want %d:\n%s", status, account, want, text)
		} else if want == http.StatusOK && !strings.Contains(text, `weir_ready_backends{pool="llama"} 1`) {
			t.Errorf("the metrics have no ready model server of the pool:\n%s", text)
		}
	}
}

// The kustomize base starts as well.
func TestKustomizeApplied(t *testing.T) {
	env := cluster(t)
	ns := env.Namespace(t)
	all := overlay(t, "../base")
	deploy(t, env, ns, all)
	d := replica(t, env, ns, all)
	d.await("it is ready", d.serving("readiness"))
}

// grant is a verb in the chart's roles, for one resource of one group.
type grant struct{ role, group, resource, verb string }

func (g grant) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s.%s", g.verb, g.resource, g.group), ".")
}

// grants returns the grants of the rendered roles for Weir's service account.
func grants(all objects) []grant {
	var found []grant
	for key, o := range all {
		if !strings.HasSuffix(o.kind(), "Role") || strings.HasSuffix(key, "-metrics-reader") {
			continue
		}
		for i := range o.at("rules").([]any) {
			for _, group := range o.texts("rules", i, "apiGroups") {
				for _, resource := range o.texts("rules", i, "resources") {
					for _, verb := range o.texts("rules", i, "verbs") {
						found = append(found, grant{key, group, resource, verb})
					}
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b grant) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// withoutGrant returns the objects without one grant of its role.
func withoutGrant(t *testing.T, values string, g grant) objects {
	t.Helper()
	all := render(t, values)
	role := all.get(t, g.role)
	var rules []any
	for i := range role.at("rules").([]any) {
		for _, group := range role.texts("rules", i, "apiGroups") {
			for _, resource := range role.texts("rules", i, "resources") {
				verbs := role.texts("rules", i, "verbs")
				if group == g.group && resource == g.resource {
					verbs = slices.DeleteFunc(verbs, func(v string) bool { return v == g.verb })
				}
				if len(verbs) > 0 {
					rule := map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
					if names := role.at("rules", i, "resourceNames"); names != nil {
						rule["resourceNames"] = names
					}
					rules = append(rules, rule)
				}
			}
		}
	}
	role["rules"] = rules
	return all
}

// unasked are the grants without which Weir is ready, with the failing feature. Without any other it is not ready.
var unasked = map[string]func(*deployed) error{
	"create tokenreviews.authentication.k8s.io":                         unreadable,
	"create subjectaccessreviews.authorization.k8s.io":                  unreadable,
	"create events.events.k8s.io":                                       unheard,
	"patch inferenceobjectives/status.llm-d.ai":                         unmarked(theirs, "inferenceobjectives", "batch"),
	"patch inferenceobjectives/status.inference.networking.x-k8s.io":    unmarked(deprecated, "inferenceobjectives", "batch"),
	"patch inferencemodelrewrites/status.llm-d.ai":                      unmarked(theirs, "inferencemodelrewrites", "canary"),
	"patch inferencemodelrewrites/status.inference.networking.x-k8s.io": unmarked(deprecated, "inferencemodelrewrites", "canary"),
	"patch inferencemodels/status.inference.networking.x-k8s.io":        unmarked(deprecated, "inferencemodels", "chat"),
}

// The groups of the resources that name objectives and models.
const theirs, deprecated = "llm-d.ai", "inference.networking.x-k8s.io"

// nameModels creates a rewrite in a group, and a model if the group has them.
func nameModels(t *testing.T, env *kubeenv.Env, ns, group string) {
	t.Helper()
	env.Apply(t, ns, `apiVersion: `+group+`/v1alpha2
kind: InferenceModelRewrite
metadata: { name: canary }
spec: { poolRef: { name: llama }, rules: [ { targets: [ { modelRewrite: llama-2 } ] } ] }
`)
	if group == deprecated {
		env.Apply(t, ns, `apiVersion: `+group+`/v1alpha2
kind: InferenceModel
metadata: { name: chat }
spec: { modelName: chat, poolRef: { name: llama } }
`)
	}
}

// unreadable returns an error if a permitted token can read the metrics.
func unreadable(d *deployed) error {
	if status, _ := d.scrape(d.env.Token(d.t, d.pod.Namespace, "prometheus")); status == http.StatusOK {
		return errors.New("the metrics are still readable")
	}
	return nil
}

// unheard returns an error if there is an Event about the model server with a wrong annotation, or if Weir has not seen
// the annotation yet.
func unheard(d *deployed) error {
	if !strings.Contains(d.logged(), "weir.dev/slots") {
		return errors.New("the log has nothing of the annotation")
	}
	events, err := d.env.Clients().EventsV1().Events(d.pod.Namespace).List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, event := range events.Items { // the apiserver's own ones are about Services
		if event.ReportingController == "weir.dev/epp" {
			return fmt.Errorf("there is the Event %s", event.Note)
		}
	}
	return nil
}

// unmarked returns a function that returns an error if a resource has a condition of Weir's.
func unmarked(group, resource, name string) func(*deployed) error {
	return func(d *deployed) error {
		kind := kubeschema.GroupVersionResource{Group: group, Version: "v1alpha2", Resource: resource}
		object, err := d.env.Objects().Resource(kind).Namespace(d.pod.Namespace).Get(d.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); len(conditions) > 0 {
			return fmt.Errorf("it has the conditions %v", conditions)
		}
		return nil
	}
}

// Each verb in the roles is needed. Without it Weir is alive and not ready, and its log and its metrics name the verb,
// the resource and the namespace; or a named feature fails.
func TestEachPermissionIsNeeded(t *testing.T) {
	env := cluster(t)
	// Weir reads nothing of a group without a definition, so this cluster has the deprecated ones alone.
	old := kubeenv.Start(t)
	old.InstallCRDs(t, deprecatedOnly(t))
	for _, g := range grants(render(t, everything)) {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel() // most of the time is waiting
			env, values := env, everything
			group := theirs
			if g.group == deprecated {
				env, values, group = old, everything+"objectivesGroup: "+deprecated+"\n", deprecated
			}
			ns := env.Namespace(t)
			all := withoutGrant(t, values, g)
			deploy(t, env, ns, all)
			modelServer(t, env, ns, "engine-0", "weir.dev/slots: many")
			nameModels(t, env, ns, group)
			d := replica(t, env, ns, all)
			if !asked(g) {
				d.await("the metrics cannot be read", func() error { return unreadable(d) })
				return
			}
			resource := strings.TrimSuffix(g.resource+"."+g.group, ".")
			missing := regexp.MustCompile(fmt.Sprintf(`weir_kubernetes_permission_missing\{[^}]*namespace="%s",[^}]*resource="%s",verb="%s"\} 1`,
				ns, regexp.QuoteMeta(resource), g.verb))
			d.await("it says what it lacks", func() error {
				if _, text := d.scrape(env.Token(t, ns, "prometheus")); !missing.MatchString(text) {
					return fmt.Errorf("there is no %s", missing)
				}
				for _, want := range []string{"A PERMISSION IS MISSING", `"verb":"` + g.verb + `"`, `"resource":"` + resource + `"`, `"namespace":"` + ns + `"`} {
					if !strings.Contains(d.logged(), want) {
						return fmt.Errorf("the log lacks %s", want)
					}
				}
				return nil
			})
			if status := d.health("liveness"); status != healthv1.HealthCheckResponse_SERVING {
				t.Errorf("liveness is %s", status)
			}
			if fails := unasked[g.String()]; fails != nil {
				d.await("it is ready", d.serving("readiness"))
				d.await("what needs it fails", func() error { return fails(d) }) // after Weir has seen the model server
			} else if status := d.health("readiness"); status != healthv1.HealthCheckResponse_NOT_SERVING {
				t.Errorf("readiness is %s", status)
			}
			// With the verb back, nothing needs a restart.
			deploy(t, env, ns, render(t, values))
			d.await("it is ready once it may", d.serving("readiness"))
			if fails := unasked[g.String()]; strings.HasSuffix(g.resource, "/status") {
				d.await("it does what it could not", func() error {
					if fails(d) == nil {
						return errors.New("not yet")
					}
					return nil
				})
			}
		})
	}
}

// everything has an objective, and a permitted reader of the metrics.
const everything = minimal + "objectives: [ { name: batch, priority: -5 } ]\n" +
	"metrics: { auth: { readers: [ { name: prometheus, namespace: " + namespace + " } ] } }\n"

// asked reports whether Weir checks the permission at the apiserver itself. It does not check those by which it checks
// others'.
func asked(g grant) bool { return !strings.HasSuffix(g.resource, "reviews") }

// deprecatedOnly returns a directory with the definitions without those of llm-d.
func deprecatedOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(crds())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".yaml") && !strings.Contains(e.Name(), "llm-d.ai") {
			text := readFile(t, filepath.Join(crds(), e.Name()))
			if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// Weir's requests to the apiserver are exactly those that the roles permit.
func TestNothingIsRefused(t *testing.T) {
	env := cluster(t)
	ns := env.Namespace(t)
	all := render(t, minimal)
	deploy(t, env, ns, all)
	d := replica(t, env, ns, all)
	d.await("it is ready", d.serving("readiness"))
	refused := map[string]bool{}
	for _, r := range env.Requests(t, kubeenv.ServiceAccountUser(ns, "llama-weir")) {
		if r.Code == http.StatusForbidden {
			refused[r.Verb+" "+r.Path] = true
		}
	}
	if len(refused) > 0 {
		t.Errorf("refused: %v", slices.Sorted(maps.Keys(refused)))
	}
}
