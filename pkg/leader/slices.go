package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
)

// fieldManager is the owner of the field endpoints, by the apiserver's record.
const fieldManager = "weir-leader"

// SliceAPI is the publication's access to the one EndpointSlice.
type SliceAPI interface {
	Get(ctx context.Context) (*discoveryv1.EndpointSlice, error)
	// Patch applies a JSON merge patch.
	Patch(ctx context.Context, patch []byte) (*discoveryv1.EndpointSlice, error)
}

// Slice is an EndpointSlice at an apiserver.
type Slice struct {
	client discovery.EndpointSliceInterface
	name   string
}

var _ SliceAPI = Slice{}

// NewSlice returns the EndpointSlice of this name. It does not create it.
func NewSlice(config *rest.Config, namespace, name string) (Slice, error) {
	client, err := discovery.NewForConfig(config)
	if err != nil {
		return Slice{}, fmt.Errorf("leader: %w", err)
	}
	return Slice{client.EndpointSlices(namespace), name}, nil
}

// Get implements SliceAPI.
func (s Slice) Get(ctx context.Context) (*discoveryv1.EndpointSlice, error) {
	return s.client.Get(ctx, s.name, metav1.GetOptions{})
}

// Patch implements SliceAPI.
func (s Slice) Patch(ctx context.Context, patch []byte) (*discoveryv1.EndpointSlice, error) {
	return s.client.Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
}

// entryOf returns the entry of a replica. Gateways that tell pods apart, as meshes do, read its targetRef.
func entryOf(me Identity, namespace string) discoveryv1.Endpoint {
	yes, no := true, false
	return discoveryv1.Endpoint{
		Addresses:  []string{me.Address},
		Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: me.Pod, UID: types.UID(me.UID)},
	}
}

// leadsTo reports whether the slice leads to this replica only.
func leadsTo(s *discoveryv1.EndpointSlice, me Identity) bool {
	if len(s.Endpoints) != 1 {
		return false
	}
	e := s.Endpoints[0]
	ready := e.Conditions.Ready == nil || *e.Conditions.Ready
	return ready && len(e.Addresses) == 1 && e.Addresses[0] == me.Address && isOf(e, me)
}

// isOf reports whether an entry is a replica's.
func isOf(e discoveryv1.Endpoint, me Identity) bool {
	return e.TargetRef != nil && e.TargetRef.Name == me.Pod && string(e.TargetRef.UID) == me.UID
}

// endpointsPatch returns the patch that replaces the entries of the read version.
func endpointsPatch(read *discoveryv1.EndpointSlice, entries []discoveryv1.Endpoint) []byte {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": read.ResourceVersion}, "endpoints": entries,
	})
	if err != nil {
		panic(fmt.Sprintf("leader: encoding a patch: %v", err)) // its types have no other values
	}
	return patch
}

// takes returns an error if an address is not of the slice's family.
func takes(s *discoveryv1.EndpointSlice, address string) error {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("the pod's address: %w", err)
	}
	family := discoveryv1.AddressTypeIPv4
	if ip.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	if s.AddressType != family {
		return fmt.Errorf("the pod's address %s is not of the type that the EndpointSlice has, %s", address, s.AddressType)
	}
	return nil
}
