package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cluster is what an apiserver has said about the objects that Weir depends on.
type Cluster struct {
	// Now is the time at which it said so.
	Now time.Time
	// Namespace is that of the pool, and Own that of Weir's pods.
	Namespace, Own string
	Kinds          []Kind
	Permissions    []Permission
	Pool           Pool
	Slice          Slice
	Certificates   []Certificate
	// Notes are what could not be asked.
	Notes []string
}

// Kind is a resource that Weir reads.
type Kind struct {
	Group, Version, Resource string
	// Needed means that Weir is not ready without it.
	Needed bool
	// Served are the versions that the apiserver has of it.
	Served []string
}

// Permission is a verb that Weir needs on a resource, and whether it may.
type Permission struct {
	Verb, Group, Resource, Namespace string
	Name                             string // of the one object; empty: all
	Allowed                          bool
}

// Pool is the pods among which Weir picks.
type Pool struct {
	// Object names what selects them: the InferencePool or the flag with the selector.
	Object string
	// Missing means that there is no such InferencePool.
	Missing bool
	// Problem is what is wrong with its selector or ports; empty: nothing.
	Problem string
	// Selector selects the pods, of which Matched are there, WithAddress have one, and Ready are ready.
	Selector                    string
	Matched, WithAddress, Ready int
}

// Slice is the EndpointSlice in which the leader enters itself.
type Slice struct {
	// Name is empty if there is no election, or no such slice is asked for.
	Name string
	// Missing means that there is none.
	Missing bool
	// Service is the one that it leads for; empty: none.
	Service string
	// Pods are the pods that its entries name, and Addresses theirs.
	Pods, Addresses []string
	// Leader is the pod that holds the Lease of the election; empty: none does. Lease is its name.
	Leader, Lease string
}

// Certificate is a pair of certificate and key with which Weir serves, in PEM.
type Certificate struct {
	// Where names the object or the directory.
	Where string
	// Problem is why it cannot be read; empty: it could.
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

// objectReporter takes what a check of a cluster has found: the object, what is there, and what should be.
type objectReporter func(where, found, change string)

// clusterChecks are those of a cluster.
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

// kindVersions checks the resources that Weir reads. Those that name objectives and models may be absent.
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

// permissions checks what Weir's service account may do.
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

// poolPods checks that the pool selects pods that can be used.
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

// leaderSlice checks that the one EndpointSlice names the leader and nobody else.
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

// soon is the part of a certificate's life that is left when a renewal should have come.
const soon = 10

// certificates checks that each pair is one, and is valid now and for a while.
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
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			report(own.Where, err.Error(), "tls.crt")
			continue
		}
		const stamp = time.RFC3339
		from, to := leaf.NotBefore, leaf.NotAfter
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
