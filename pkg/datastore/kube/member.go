package kube

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// member has the relevant parts of a pod.
type member struct {
	uid     types.UID
	created time.Time
	address netip.Addr // invalid: missing or bad
	ready   bool
	annotated
	work    scheduling.Work
	problem string // problems of its annotations, its label or its address; empty: none
}

// memberOf returns the relevant parts of a pod. The pod is ready if its condition Ready is true and it is not being
// deleted: from the deletion timestamp on it gets no new requests, even while it is Ready. Its address is status.podIP,
// the first of status.podIPs: it is of the cluster's first address family, to which gateways route.
func memberOf(pod *corev1.Pod) member {
	m := member{uid: pod.UID, created: pod.CreationTimestamp.Time}
	m.annotated, m.problem = readAnnotations(pod.Annotations)
	work, problem := readRole(pod.Labels)
	if m.work = work; problem != "" {
		m.problem = strings.TrimPrefix(m.problem+"; "+problem, "; ")
	}
	if ip := pod.Status.PodIP; ip != "" {
		address, err := netip.ParseAddr(ip)
		if err == nil && address.Zone() == "" && isOfAPod(address.Unmap()) {
			m.address = address.Unmap()
		} else {
			m.problem = strings.TrimPrefix(m.problem+fmt.Sprintf("; status.podIP: %q: is no address of a pod", short(ip)), "; ")
		}
	}
	m.ready = pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	return m
}

// isOfAPod reports whether an address may be a pod's, by Kubernetes' rules for EndpointSlices: a writer of a pod's
// status must not be able to send requests to a cloud's metadata service (169.254.169.254). Loopback addresses are
// permitted, for setups on one machine.
func isOfAPod(address netip.Addr) bool {
	return !address.IsUnspecified() && !address.IsMulticast() && !address.IsLinkLocalUnicast()
}

func (m *member) equal(o *member) bool {
	return m.uid == o.uid && m.created.Equal(o.created) && m.address == o.address && m.ready == o.ready &&
		m.slots == o.slots && m.maxBatchedTokens == o.maxBatchedTokens && m.priority == o.priority && maps.Equal(m.labels, o.labels) && slices.Equal(m.taints, o.taints) &&
		m.work == o.work && slices.Equal(m.models, o.models) && m.lacks == o.lacks && m.lacksStated == o.lacksStated && m.problem == o.problem
}

// olderFirst orders members for datastore.Store.Set.
func olderFirst(a, b *member) int {
	return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.uid, b.uid))
}

// endpoints appends the member's endpoints, one for each port. Their identity is the pod's UID: a new pod with the same
// name or address is another endpoint.
func (m *member) endpoints(to []scheduling.Endpoint, ports []int) []scheduling.Endpoint {
	if !m.address.IsValid() {
		return to
	}
	for _, port := range ports {
		to = append(to, scheduling.Endpoint{
			Key:     string(m.uid) + ":" + strconv.Itoa(port),
			Address: netip.AddrPortFrom(m.address, uint16(port)).String(),
			Ready:   m.ready, Slots: m.slots, Models: m.models, Work: m.work, Lacks: m.lacks, LacksStated: m.lacksStated,
			MaxBatchedTokens: int64(m.maxBatchedTokens), Labels: m.labels, Taints: m.taints, Priority: m.priority,
		})
	}
	return to
}

// trimPod removes the parts that memberOf does not read.
func trimPod(pod *corev1.Pod) {
	*pod = corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: trimAnnotations(pod.Annotations), Labels: trimLabels(pod.Labels),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, Conditions: readyOnly(pod.Status.Conditions)},
	}
}

// readyOnly returns the condition Ready without its texts.
func readyOnly(conditions []corev1.PodCondition) []corev1.PodCondition {
	for _, c := range conditions {
		if c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return nil
}
