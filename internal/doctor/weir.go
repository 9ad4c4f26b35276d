package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/extproc"
)

// Weir is Weir's side: its configuration, and facts from its flags.
type Weir struct {
	// Document is the effective configuration.
	Document config.Document
	// TLS is true if Weir serves Envoy over TLS; nil: not known.
	TLS *bool
	// ClientCertificates means that Weir asks Envoy for a certificate.
	ClientCertificates bool
	// Port is the port of Weir's ext_proc server; 0: not known.
	Port int
	// Endpoints are the addresses of the model servers, ip:port; nil: not known.
	Endpoints []string
	// Unnamed are the Endpoints that Weir never names to an Envoy as a destination: prefill and encode engines.
	Unnamed []string
	// Clusters are the names of the Envoy clusters that contain Weir. Without any, each ext_proc filter is Weir's.
	Clusters []string
}

// isAsked reports whether the streams of an ext_proc filter go to Weir.
func (w Weir) isAsked(u use) bool {
	return len(w.Clusters) == 0 || slices.Contains(w.Clusters, u.processor())
}

// Asks reports whether a filter in use at an Envoy opens streams to the named cluster.
func Asks(e *Envoy, cluster string) bool {
	return len(Weir{Clusters: []string{cluster}}.of(e, false)) > 0
}

// longestWait is the longest time a request can wait in the queue.
func (w Weir) longestWait() time.Duration {
	longest := w.Document.FairRequestQueue.QueueTTL
	for _, t := range w.Document.Tiers {
		if t.QueueTimeout != nil {
			longest = max(longest, *t.QueueTimeout)
		}
	}
	return time.Duration(longest)
}

// longestAsked is the longest message timeout that Weir asks for.
func (w Weir) longestAsked() time.Duration {
	return min(w.longestWait()+extproc.WaitMargin, extproc.LongestHold)
}

// addresses returns the addresses as a set, in the form of Envoy's addresses.
func addresses(list []string) map[string]bool {
	all := map[string]bool{}
	for _, e := range list {
		if ap, err := netip.ParseAddrPort(e); err == nil {
			e = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
		}
		all[e] = true
	}
	return all
}

// source is a header or metadata namespace that Weir reads, and the configuration's key for it.
type source struct{ key, name string }

const (
	headerSource   = "header:"
	metadataSource = "metadata:"
)

// headers returns the request headers that Weir trusts, by header, each with the first key that names it. Clients may
// send headers that name a class, or a tier if criticality.maxClass bounds it (docs/envoy.md).
func (w Weir) headers() []source {
	d := w.Document
	var all []source
	add := func(key string, names ...string) {
		for _, name := range names {
			name = strings.ToLower(name)
			if name != "" && !slices.ContainsFunc(all, func(s source) bool { return s.name == name }) {
				all = append(all, source{key, name})
			}
		}
	}
	identities := func(key string, from []string) {
		for _, s := range from {
			if name, ok := strings.CutPrefix(s, headerSource); ok {
				add(key, name)
			}
		}
	}
	identities("flows.key", d.Flows.Key)
	for i := range d.Flows.Levels {
		identities(levelKey(i), d.Flows.Levels[i].Key)
	}
	identities("flows.role", d.Flows.Role)
	add("trustedHeaders.model", d.TrustedHeaders.Model)
	add("trustedHeaders.cost", d.TrustedHeaders.Cost)
	add("trustedHeaders.inputTokens", d.TrustedHeaders.InputTokens)
	add("trustedHeaders.requirements", d.TrustedHeaders.Requirements)
	if d.Criticality.MaxClass == "" {
		add("criticality.header", d.Criticality.Header)
	}
	if len(d.Objectives) > 0 {
		add("criticality.objectiveHeaders", d.Criticality.ObjectiveHeaders...)
	}
	add("requestQueueController.deadlineHeaders", d.RequestQueueController.DeadlineHeaders...)
	slices.SortFunc(all, func(a, b source) int { return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.name, b.name)) })
	return all
}

// namespaces returns the metadata namespaces that Weir reads, each with a key that names it. own is true for a
// namespace that the configuration itself names. The others, named by the profile alone, are wanted only if something
// in Envoy fills them.
func (w Weir) namespaces() (all []source, own map[string]bool) {
	d := w.Document
	profile, _ := config.Profile(d.Profile)
	own = map[string]bool{}
	add := func(key string, from, of []string) {
		for _, s := range from {
			name, ok := strings.CutPrefix(s, metadataSource)
			if !ok {
				continue
			}
			name, _, _ = strings.Cut(name, "/")
			all = append(all, source{key, name})
			own[name] = own[name] || !slices.Contains(of, s)
		}
	}
	add("flows.key", d.Flows.Key, profile.Flows.Key)
	for i := range d.Flows.Levels {
		add(levelKey(i), d.Flows.Levels[i].Key, nil)
	}
	add("flows.role", d.Flows.Role, profile.Flows.Role)
	if d.Criticality.Metadata != "" {
		add("criticality.metadata", []string{metadataSource + d.Criticality.Metadata}, []string{metadataSource + profile.Criticality.Metadata})
	}
	return all, own
}

// levelKey returns the name of the key of a level of flows.
func levelKey(i int) string { return fmt.Sprintf("flows.levels[%d].key", i) }
