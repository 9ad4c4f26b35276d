package simulate

import (
	"cmp"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// tenants is the configuration for a workload's tenants.
type tenants struct {
	rules   *request.Rules
	metered bool // some have quotas
	levels  int  // of flows
}

// identify sets an arrival's tier, path and tenant from the request's tenant and role, like a stream.
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
