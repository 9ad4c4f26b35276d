package config

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// tenants converts SMG's tenant keys, which name their source, to identities: header:acme is the tenant acme, named by
// the header in the flow's key.
func (im *smgImport) tenants() {
	named := map[string]string{} // our tenants, by SMG's key
	header := false
	for _, key := range slices.Sorted(maps.Keys(im.file.TenantPolicies)) {
		path := im.prefix + join("tenant_policies", key)
		class := im.file.TenantPolicies[key].MaxClass
		im.problems.oneOf(path+".max_class", class, smgClasses)
		source, tenant, prefixed := strings.Cut(key, ":")
		switch {
		case prefixed && source == "ip":
			im.note("%s: ignored: Weir knows no tenants by their address; have the gateway name them in a header", path)
			continue
		case prefixed && source == "header":
			header = true
		case prefixed && source == "auth":
			im.note("%s: is the tenant %q here, which your gateway's authentication has to name: SMG's identities are hashes "+
				"of API keys; put their source into flows.key, such as metadata:envoy.filters.http.jwt_authn/payload/sub; any "+
				"other source in flows.key that names %q gets this policy as well", path, tenant, tenant)
		default:
			tenant = key
		}
		if other, twice := named[tenant]; twice {
			im.problems.add(path, key, "is the tenant %q here, and so is %s", tenant, other)
			continue
		}
		if tenant == "" || tenant == "*" {
			im.problems.add(path, key, "must name a tenant")
			continue
		}
		named[tenant] = key
		if im.Document.TenantPolicies == nil {
			im.Document.TenantPolicies = map[string]TenantPolicy{}
		}
		im.Document.TenantPolicies[tenant] = TenantPolicy{MaxClass: class}
	}
	im.tenantHeader(header)
}

// tenantHeader adds the header that names tenants to the sources of the flow's key, if SMG trusts it or a policy needs
// it.
func (im *smgImport) tenantHeader(needed bool) {
	trust := im.file.TrustTenantHeader
	if trust != nil && !*trust {
		if needed {
			im.note("%strust_tenant_header: false: the policies of tenants of the header apply to no request; add header:NAME to "+
				"flows.key once the gateway sets or strips it", im.prefix)
		}
		return
	}
	if trust == nil && !needed {
		return
	}
	name := smgTenantHeader
	if im.file.TenantHeaderName != nil {
		name = strings.ToLower(*im.file.TenantHeaderName)
		if !httpguts.ValidHeaderFieldName(name) {
			im.problems.add(im.prefix+"tenant_header_name", name, "must be the name of a header")
		}
	}
	im.Document.Flows.Key = []string{SourceHeader + name, SourceModel}
	im.note("flows.key trusts the request header %s to name the tenant: the gateway must set it, or strip it from "+
		"requests of clients", name)
}

// others converts the fields that belong to no class or tenant.
func (im *smgImport) others() {
	if class := im.file.DefaultMaxClass; class != nil {
		im.problems.oneOf(im.prefix+"default_max_class", *class, smgClasses)
		im.Document.Criticality.MaxClass = *class
	}
	if on := im.file.Enabled; on != nil && !*on {
		im.note("%senabled: false: ignored: the imported scheduler is on here", im.prefix)
	}
	for _, ignored := range []struct {
		field string
		value *int64
		why   string
	}{
		{"capacity", im.file.Capacity, noFallback},
		{"total_capacity", im.file.TotalCapacity, noFallback},
		{"fallback_capacity", im.file.FallbackCapacity, noFallback},
		{"default_capacity", im.file.DefaultCapacity, noFallback},
		{"max_concurrent_requests", im.file.MaxConcurrentRequests, noFallback},
		{"tenant_metric_top_n", im.file.TenantMetricTopN, "no metric has a label by tenant"},
	} {
		if ignored.value != nil {
			im.note("%s%s: %d: ignored: %s", im.prefix, ignored.field, *ignored.value, ignored.why)
		}
	}
}

const noFallback = "the capacity is that of the ready backends (slots, or slotsPerBackend for one that reports none); " +
	"with none ready it is 0, and requests wait"

// offers notes changes that the operator may want, and the warnings about the document itself.
func (im *smgImport) offers() {
	for _, w := range im.Document.warnings(true) {
		im.note("in the new file: %s", w.Error())
	}
	im.note("a request whose queue timeout is over gets 503, as in SMG from 1.13 on; for the earlier 408, which some " +
		"proxies retry at once, add: responses: { status: { ttl-expired: 408 } }")
}
