package doctor

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cluster has an apiserver's answers about the objects that Weir depends on.
type Cluster struct {
	// Now is the time of the answers.
	Now time.Time
	// Namespace is the pool's namespace, and Own that of Weir's pods.
	Namespace, Own string
	Kinds          []Kind
	Permissions    []Permission
	Pool           Pool
	Slice          Slice
	Certificates   []Certificate
	// Notes are the questions that could not be asked.
	Notes []string
}

// Kind is a resource that Weir reads.
type Kind struct {
	Group, Version, Resource string
	// Needed means that Weir is not ready without it.
	Needed bool
	// Served are its versions that the apiserver serves.
	Served []string
}

// Permission is a verb that Weir needs on a resource, and whether Weir has it.
type Permission struct {
	Verb, Group, Resource, Namespace string
	Name                             string // the one object's; empty: all
	Allowed                          bool
}

// Pool is the set of pods that Weir picks from.
type Pool struct {
	// Object names the source of the selector: the InferencePool or the flag.
	Object string
	// Missing means that there is no such InferencePool.
	Missing bool
	// Problem is the error in its selector or ports; empty: none.
	Problem string
	// Selector selects the pods. Matched is the number of pods, WithAddress of those with an address, Ready of ready
	// ones.
	Selector                    string
	Matched, WithAddress, Ready int
}

// Slice is the EndpointSlice that the leader keeps.
type Slice struct {
	// Name is empty without an election, or without such a slice.
	Name string
	// Missing means that the slice does not exist.
	Missing bool
	// Service is the Service that the slice belongs to; empty: none.
	Service string
	// Pods are the pods named by its entries.
	Pods []string
	// Leader is the pod that holds the election's Lease; empty: none does. Lease is the Lease's name.
	Leader, Lease string
}

// Certificate is a certificate and key that Weir serves with, in PEM.
type Certificate struct {
	// Where names its object or directory.
	Where string
	// Problem is the reason why it could not be read; empty: it was.
	Problem string
	// PEM is the chain, and Key its key.
	PEM, Key []byte
}

// ExamineCluster applies the checks of a cluster.
func ExamineCluster(c Cluster) Report {
	r := Report{Notes: c.Notes}
	for _, check := range Checks() {
		if check.cluster == nil {
			continue
		}
		check.cluster(c, func(where, found, change string) {
			r.Findings = append(r.Findings, Finding{Check: check, Where: where, Found: found, Change: change})
		})
	}
	return r
}

// objectReporter takes a finding in a cluster: the object, its state, and the correct state.
type objectReporter func(where, found, change string)

// clusterChecks are the checks of a cluster.
func clusterChecks() []Check {
	return []Check{
		{
			ID:      "crd-version",
			Title:   "a resource is not served in the version that Weir reads",
			Why:     "Weir is not ready without its InferencePool, and reads no names of objectives and models in another version.",
			Fix:     "Install the CRDs of charts/weir/crds, or upgrade the existing ones.",
			Harm:    []string{"TestDoctorOfACluster"},
			cluster: kindVersions,
		},
		{
			ID:      "permission",
			Title:   "Weir's service account lacks a permission",
			Why:     "A part of Weir waits until the permission is granted: Weir may never be ready.",
			Fix:     "Add the verb to Weir's Role.",
			Harm:    []string{"TestOneVerbShort"},
			cluster: permissions,
		},
		{
			ID:      "pool-pods",
			Title:   "the pool has no usable pod",
			Why:     "Requests wait until their TTL, or are rejected at once.",
			Fix:     "Make the selector, the ports and the labels of the pods agree.",
			Harm:    []string{"TestDoctorOfACluster"},
			cluster: poolPods,
		},
		{
			ID:      "leader-slice",
			Title:   "the Service does not point to the leader",
			Why:     "Gateways open streams to a replica that does not lead, or to none, and fail open or closed.",
			Fix:     "Create the EndpointSlice of the chart, with the label of the Service and without endpoints: the leader enters itself.",
			Harm:    []string{"TestDoctorOfACluster"},
			cluster: leaderSlice,
		},
		{
			ID:      "certificate",
			Title:   "Weir's certificate is not valid",
			Why:     "An Envoy or gateway that verifies it opens no stream.",
			Fix:     "Renew the certificate; with --enable-cert-reload epp follows changes of its files.",
			Harm:    []string{"TestDoctorOfACluster"},
			cluster: certificates,
		},
	}
}

// kindVersions checks the resources that Weir reads. Resources that name objectives and models may be absent.
func kindVersions(c Cluster, report objectReporter) {
	for _, k := range c.Kinds {
		found := fmt.Sprintf("served as %s", strings.Join(k.Served, ", "))
		switch {
		case slices.Contains(k.Served, k.Version):
			continue
		case len(k.Served) > 0:
		case k.Needed:
			found = "not installed"
		default:
			continue
		}
		report(fmt.Sprintf("%s.%s", k.Resource, k.Group), found, fmt.Sprintf("versions: [{ name: %s, served: true }]", k.Version))
	}
}

// permissions checks the permissions of Weir's service account.
func permissions(c Cluster, report objectReporter) {
	for _, p := range c.Permissions {
		if p.Allowed {
			continue
		}
		names := ""
		if p.Name != "" {
			names = fmt.Sprintf("resourceNames: [%s], ", p.Name)
		}
		where := "namespace " + p.Namespace
		if p.Namespace == "" {
			where = "the cluster"
		}
		report(where, fmt.Sprintf("%s %s is not allowed", p.Verb, strings.TrimSuffix(p.Resource+"."+p.Group, ".")),
			fmt.Sprintf("rules: [{ apiGroups: [%q], resources: [%s], %sverbs: [%s] }]", p.Group, p.Resource, names, p.Verb))
	}
}

// poolPods checks that the pool selects usable pods.
func poolPods(c Cluster, report objectReporter) {
	p := c.Pool
	const labels = "metadata: { labels: … } (of the pods)"
	switch {
	case p.Object == "":
	case p.Missing:
		report(p.Object, "there is none in namespace "+c.Namespace, "--pool-name and --pool-namespace (of Weir)")
	case p.Problem != "":
		report(p.Object, p.Problem, "spec: { selector: …, targetPorts: … }")
	case p.Matched == 0:
		report(p.Object, fmt.Sprintf("selector %s matches no pod in namespace %s", p.Selector, c.Namespace), labels)
	case p.Ready == 0:
		report(p.Object, fmt.Sprintf("of %d pods %d have an address, and none is ready", p.Matched, p.WithAddress),
			"the readinessProbe of the model servers")
	}
}

// leaderSlice checks that the EndpointSlice names only the leader.
func leaderSlice(c Cluster, report objectReporter) {
	s := c.Slice
	where := fmt.Sprintf("EndpointSlice %s/%s", c.Own, s.Name)
	switch {
	case s.Name == "":
	case s.Missing:
		report(where, "there is none", "charts/weir/templates/endpointslice.yaml")
	case s.Service == "":
		report(where, "it has no label kubernetes.io/service-name", "metadata: { labels: { kubernetes.io/service-name: … } }")
	case s.Leader == "":
		report(where, fmt.Sprintf("nobody holds Lease %s", s.Lease), "the log of Weir's pods")
	case !slices.Equal(s.Pods, []string{s.Leader}):
		report(where, fmt.Sprintf("it names pods [%s], and pod %s leads", strings.Join(s.Pods, ", "), s.Leader),
			"no endpoints of anybody else's; the leader needs POD_NAME, POD_UID and POD_IP, and patch on the slice")
	}
}

// soon is the divisor of a certificate's lifetime: with less than a tenth of it left, the certificate should have been
// renewed.
const soon = 10

// certificates checks that each certificate and key match, and are valid now and for a while.
func certificates(c Cluster, report objectReporter) {
	for _, own := range c.Certificates {
		if own.Problem != "" {
			report(own.Where, own.Problem, "tls.crt and tls.key")
			continue
		}
		pair, err := tls.X509KeyPair(own.PEM, own.Key)
		if err != nil {
			report(own.Where, err.Error(), "tls.crt and tls.key of one pair")
			continue
		}
		const stamp = time.RFC3339
		from, to := pair.Leaf.NotBefore, pair.Leaf.NotAfter
		switch {
		case c.Now.After(to):
			report(own.Where, "it ended at "+to.UTC().Format(stamp), "a certificate that is valid")
		case c.Now.Before(from):
			report(own.Where, "it begins at "+from.UTC().Format(stamp), "a certificate that is valid")
		case to.Sub(c.Now) < to.Sub(from)/soon:
			report(own.Where, "it ends at "+to.UTC().Format(stamp)+", after nine tenths of its time", "a renewal")
		}
	}
}
