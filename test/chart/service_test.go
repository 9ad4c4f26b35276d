package chart

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-epp/weir/internal/kubeenv"
)

// serviceLook is the time between two checks of a Service.
const serviceLook = 20 * time.Millisecond

// leadersService plays Kubernetes' controllers for one Service, since none runs here, and records its endpoints. For a
// Service with a selector they keep Endpoints and an EndpointSlice with its ready pods. After the removal of a selector
// they keep both unchanged (kubernetes/kubernetes#118376), and mirror the Endpoints.
type leadersService struct {
	clients  *kubernetes.Clientset
	ns, name string

	mu      sync.Mutex
	to      []string      // the addresses of all its slices, sorted
	since   time.Time     // begin of the time without an endpoint; zero: it has one
	longest time.Duration // longest time without an endpoint
}

func watchService(t *testing.T, env *kubeenv.Env, ns, name string) *leadersService {
	t.Helper()
	config := env.Admin()
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &leadersService{clients: clients, ns: ns, name: name}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := s.control(ctx); err == nil {
				s.look(ctx)
			}
			time.Sleep(serviceLook)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return s
}

// leadsTo returns the Service's endpoints.
func (s *leadersService) leadsTo() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.to)
}

// counts returns the longest time without an endpoint, and restarts the count.
func (s *leadersService) counts() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := s.longest
	if !s.since.IsZero() {
		longest = max(longest, time.Since(s.since))
	}
	s.longest = 0
	return longest
}

// look reads the Service's endpoints.
func (s *leadersService) look(ctx context.Context) {
	list, err := s.clients.DiscoveryV1().EndpointSlices(s.ns).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + s.name,
	})
	if err != nil {
		return
	}
	var to []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				to = append(to, e.Addresses...)
			}
		}
	}
	slices.Sort(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = slices.Compact(to)
	switch {
	case len(to) > 0 && !s.since.IsZero():
		s.longest, s.since = max(s.longest, time.Since(s.since)), time.Time{}
	case len(to) == 0 && s.since.IsZero():
		s.since = time.Now()
	}
}

// control plays the controllers.
func (s *leadersService) control(ctx context.Context) error {
	core := s.clients.CoreV1()
	service, err := core.Services(s.ns).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(service.Spec.Selector) == 0 {
		return s.mirror(ctx)
	}
	pods, err := core.Pods(s.ns).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String()})
	if err != nil {
		return err
	}
	var addresses []string
	for _, p := range pods.Items {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if ready && p.DeletionTimestamp == nil {
			addresses = append(addresses, p.Status.PodIP)
		}
	}
	if err := s.putEndpoints(ctx, addresses); err != nil {
		return err
	}
	return s.putSlice(ctx, "endpointslice-controller.k8s.io", addresses)
}

// mirror makes a slice of the Endpoints, as long as there are some.
func (s *leadersService) mirror(ctx context.Context) error {
	endpoints, err := s.clients.CoreV1().Endpoints(s.ns).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var addresses []string
	for _, subset := range endpoints.Subsets {
		for _, a := range subset.Addresses {
			addresses = append(addresses, a.IP)
		}
	}
	return s.putSlice(ctx, "endpointslicemirroring-controller.k8s.io", addresses)
}

func (s *leadersService) putEndpoints(ctx context.Context, addresses []string) error {
	client := s.clients.CoreV1().Endpoints(s.ns)
	endpoints, err := client.Get(ctx, s.name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	endpoints.Name, endpoints.Subsets = s.name, nil
	if len(addresses) > 0 {
		subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "grpc", Port: 9002}}} //nolint:staticcheck // Kubernetes has them still
		for _, a := range addresses {
			subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: a})
		}
		endpoints.Subsets = append(endpoints.Subsets, subset)
	}
	if missing {
		_, err = client.Create(ctx, endpoints, metav1.CreateOptions{})
	} else {
		_, err = client.Update(ctx, endpoints, metav1.UpdateOptions{})
	}
	return err
}

// putSlice keeps a controller's slice. Without an address there is none.
func (s *leadersService) putSlice(ctx context.Context, controller string, addresses []string) error {
	client := s.clients.DiscoveryV1().EndpointSlices(s.ns)
	name := s.name + "-" + controller
	slice, err := client.Get(ctx, name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	switch {
	case err != nil && !missing:
		return err
	case missing && len(addresses) == 0:
		return nil
	}
	port, grpc := int32(9002), "grpc"
	slice.Name, slice.AddressType, slice.Ports = name, discoveryv1.AddressTypeIPv4, []discoveryv1.EndpointPort{{Name: &grpc, Port: &port}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: s.name, discoveryv1.LabelManagedBy: controller}
	slice.Endpoints = nil
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	if missing {
		_, err = client.Create(ctx, slice, metav1.CreateOptions{})
	} else {
		_, err = client.Update(ctx, slice, metav1.UpdateOptions{})
	}
	return err
}
