package simulate

import (
	"cmp"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// tenants is a configuration's part about the tenants of a workload.
type tenants struct {
	rules   *request.Rules
	metered bool // some have quotas
	levels  int  // of flows
}

// identify gives an arrival the tier, the path and the tenant that a request has by its tenant and its role, as a stream would.
func (t *tenants) identify(r *Request, a *dispatch.Arrival) {
	tenant := cmp.Or(r.Tenant, r.Flow)
	var role string
	if role, a.Tier = t.rules.OfTenant(tenant, r.Role); t.metered {
		a.Tenant = tenant
	}
	if under := t.levels > 1 && r.User != ""; r.Class != "" || role != "" || under {
		a.Path = &fairqueue.Path{Class: r.Class, Role: role}
		if under {
			a.Path.Under = []string{r.User}
		}
	}
}
