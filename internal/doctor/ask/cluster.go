package ask

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-epp/weir/internal/doctor"
	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/leader"
)

// Options are the options of Weir that concern the cluster.
type Options struct {
	// Namespace is the pool's namespace, and Own that of Weir's pods.
	Namespace, Own string
	// Pool and Group are the InferencePool's name and group; empty: Selector selects the pods.
	Pool, Group, Selector string
	// Election means that replicas elect a leader, and Slice names the EndpointSlice that the leader keeps.
	Election bool
	Slice    string
	// ServiceAccount is Weir's, in the namespace Own; empty: the caller's permissions are checked.
	ServiceAccount string
	// MetricsAuth means that Weir checks the readers of its metrics with the apiserver.
	MetricsAuth bool
	// Secret names the Secret with the certificate, in the namespace Own, and CertPath the directory with it; empty:
	// none.
	Secret, CertPath string
}

// asking has the clients and their answers so far.
type asking struct {
	Options
	clients, weir kubernetes.Interface
	objects       dynamic.Interface
	facts         doctor.Cluster
}

// Cluster asks the apiserver.
func Cluster(ctx context.Context, config *rest.Config, o Options) (doctor.Cluster, error) {
	a := &asking{Options: o, facts: doctor.Cluster{Now: time.Now(), Namespace: o.Namespace, Own: o.Own}}
	var err error
	if a.clients, err = kubernetes.NewForConfig(config); err != nil {
		return a.facts, fmt.Errorf("ask: %w", err)
	}
	if a.objects, err = dynamic.NewForConfig(config); err != nil {
		return a.facts, fmt.Errorf("ask: %w", err)
	}
	a.weir = a.clients
	if o.ServiceAccount != "" {
		own := rest.CopyConfig(config)
		own.Impersonate.UserName = fmt.Sprintf("system:serviceaccount:%s:%s", o.Own, o.ServiceAccount)
		own.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + o.Own, "system:authenticated"}
		if a.weir, err = kubernetes.NewForConfig(own); err != nil {
			return a.facts, fmt.Errorf("ask: %w", err)
		}
	}
	for _, question := range []func(context.Context) error{a.kinds, a.permissions, a.pods, a.slice, a.certificates} {
		if err := question(ctx); err != nil {
			return a.facts, err
		}
	}
	return a.facts, nil
}

// forbidden notes a question that the caller may not ask, and returns any other error unchanged.
func (a *asking) forbidden(what string, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("asking the apiserver for %s: %w", what, err)
	}
	a.facts.Notes = append(a.facts.Notes, fmt.Sprintf("%s: %v", what, err))
	return nil
}

// kinds asks for the served versions of the resources.
func (a *asking) kinds(context.Context) error {
	wanted := []doctor.Kind{}
	if a.Pool != "" {
		wanted = append(wanted, doctor.Kind{Group: a.Group, Version: kubeapi.PoolGroupVersion.Version, Resource: poolResource, Needed: true})
		for _, n := range names {
			wanted = append(wanted, doctor.Kind{Group: n.group.Group, Version: n.group.Version, Resource: n.resource})
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	_, lists, err := a.clients.Discovery().ServerGroupsAndResources()
	if err != nil && len(lists) == 0 {
		return a.forbidden("its resources", err)
	}
	for _, k := range wanted {
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err == nil && gv.Group == k.Group && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.Resource }) {
				k.Served = append(k.Served, gv.Version)
			}
		}
		a.facts.Kinds = append(a.facts.Kinds, k)
	}
	return nil
}

const poolResource = "inferencepools"

// names are the resources that name objectives and models.
var names = []struct {
	group    schema.GroupVersion
	resource string
}{
	{kubeapi.NamesGroupVersion, "inferenceobjectives"},
	{kubeapi.NamesGroupVersion, "inferencemodelrewrites"},
	{kubeapi.OldGroupVersion, "inferenceobjectives"},
	{kubeapi.OldGroupVersion, "inferencemodelrewrites"},
	{kubeapi.OldGroupVersion, "inferencemodels"},
}

// permissions asks for each permission that Weir needs whether Weir has it. Permissions on absent resources are not
// needed.
func (a *asking) permissions(ctx context.Context) error {
	var wanted []doctor.Permission
	add := func(group, resource, namespace, name string, verbs ...string) {
		for _, verb := range verbs {
			wanted = append(wanted, doctor.Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
		}
	}
	add("", "pods", a.Namespace, "", "list", "watch")
	add("events.k8s.io", "events", a.Namespace, "", "create")
	for _, k := range a.facts.Kinds {
		if !slices.Contains(k.Served, k.Version) {
			continue
		}
		add(k.Group, k.Resource, a.Namespace, "", "list", "watch")
		if !k.Needed {
			add(k.Group, k.Resource+"/status", a.Namespace, "", "patch")
		}
	}
	add("coordination.k8s.io", "leases", a.Own, "", "get", "list", "create", "update", "delete")
	if a.Election && a.Slice != "" {
		add("discovery.k8s.io", "endpointslices", a.Own, a.Slice, "get", "patch")
	}
	if a.MetricsAuth {
		add("authentication.k8s.io", "tokenreviews", "", "", "create")
		add("authorization.k8s.io", "subjectaccessreviews", "", "", "create")
	}
	for _, p := range wanted {
		resource, sub, _ := strings.Cut(p.Resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: sub, Namespace: p.Namespace, Name: p.Name,
			},
		}}
		answer, err := a.weir.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return a.forbidden("the permissions of Weir", err)
		}
		p.Allowed = answer.Status.Allowed
		a.facts.Permissions = append(a.facts.Permissions, p)
	}
	return nil
}

// pods asks for the pods of the pool.
func (a *asking) pods(ctx context.Context) error {
	p := &a.facts.Pool
	p.Selector = a.Selector
	switch {
	case a.Pool != "":
		p.Object = fmt.Sprintf("InferencePool %s/%s", a.Namespace, a.Pool)
		resource := schema.GroupVersionResource{Group: a.Group, Version: kubeapi.PoolGroupVersion.Version, Resource: poolResource}
		if !a.served(resource) {
			p.Object = ""
			return nil // a check reports it
		}
		// A list, since Weir's own service account may not get the object.
		found, err := a.objects.Resource(resource).Namespace(a.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", a.Pool).String(),
		})
		if err != nil {
			return a.withoutPods(p.Object, err)
		}
		if len(found.Items) == 0 {
			p.Missing = true
			return nil
		}
		var pool kubeapi.InferencePool
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[0].Object, &pool); err != nil {
			p.Problem = err.Error()
			return nil
		}
		labels := pool.Spec.Selector.MatchLabels
		if len(labels) == 0 || len(pool.Spec.TargetPorts) == 0 {
			p.Problem = "it has no selector, or no ports"
			return nil
		}
		p.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
	case a.Selector != "":
		p.Object = "--endpoint-selector=" + a.Selector
	default:
		return nil
	}
	list, err := a.clients.CoreV1().Pods(a.Namespace).List(ctx, metav1.ListOptions{LabelSelector: p.Selector})
	if err != nil {
		return a.withoutPods("pods", err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		p.Matched++
		if pod.Status.PodIP != "" {
			p.WithAddress++
			if isReady(pod) {
				p.Ready++
			}
		}
	}
	return nil
}

// served reports whether the apiserver has a resource in the version that Weir reads.
func (a *asking) served(r schema.GroupVersionResource) bool {
	return slices.ContainsFunc(a.facts.Kinds, func(k doctor.Kind) bool {
		return k.Group == r.Group && k.Resource == r.Resource && slices.Contains(k.Served, r.Version)
	})
}

// withoutPods notes that the pods could not be asked for.
func (a *asking) withoutPods(what string, err error) error {
	a.facts.Pool.Object = ""
	return a.forbidden(what, err)
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// slice asks for the leader's EndpointSlice, and for the leader.
func (a *asking) slice(ctx context.Context) error {
	if !a.Election || a.Slice == "" {
		return nil
	}
	s := &a.facts.Slice
	pool := leader.SelectorLabelOf(a.Selector)
	if a.Pool != "" {
		pool = leader.PoolLabelOf(a.Pool)
	}
	s.Lease = leader.ElectionLease(pool)
	found, err := a.clients.DiscoveryV1().EndpointSlices(a.Own).Get(ctx, a.Slice, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.Name, s.Missing = a.Slice, true
		return nil
	case err != nil:
		return a.forbidden("EndpointSlice "+a.Slice, err)
	}
	lease, err := a.clients.CoordinationV1().Leases(a.Own).Get(ctx, s.Lease, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return a.forbidden("Lease "+s.Lease, err)
	}
	if err == nil && lease.Spec.HolderIdentity != nil {
		s.Leader = leader.PodOfHolder(*lease.Spec.HolderIdentity)
	}
	s.Name, s.Service = a.Slice, found.Labels["kubernetes.io/service-name"]
	for _, e := range found.Endpoints {
		name := ""
		if e.TargetRef != nil {
			name = e.TargetRef.Name
		}
		s.Pods = append(s.Pods, cmp.Or(name, strings.Join(e.Addresses, " ")))
	}
	return nil
}

// certificates reads Weir's serving certificates and keys.
func (a *asking) certificates(ctx context.Context) error {
	if a.Secret != "" {
		own := doctor.Certificate{Where: fmt.Sprintf("Secret %s/%s", a.Own, a.Secret)}
		secret, err := a.clients.CoreV1().Secrets(a.Own).Get(ctx, a.Secret, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			own.Problem = "there is none"
		case err != nil:
			return a.forbidden(own.Where, err)
		default:
			own.PEM, own.Key = secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
		}
		a.facts.Certificates = append(a.facts.Certificates, own)
	}
	if a.CertPath == "" {
		return nil
	}
	own := doctor.Certificate{Where: "--cert-path=" + a.CertPath}
	if _, err := os.Stat(a.CertPath); err != nil {
		if a.Secret == "" {
			a.facts.Notes = append(a.facts.Notes, fmt.Sprintf("%s is not on this machine; --certificate-secret names its Secret", own.Where))
		}
		return nil
	}
	for file, to := range map[string]*[]byte{corev1.TLSCertKey: &own.PEM, corev1.TLSPrivateKeyKey: &own.Key} {
		text, err := os.ReadFile(filepath.Join(a.CertPath, file))
		if err != nil {
			own.Problem = err.Error()
		}
		*to = text
	}
	a.facts.Certificates = append(a.facts.Certificates, own)
	return nil
}
