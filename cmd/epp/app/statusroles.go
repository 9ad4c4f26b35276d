package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// roleTable writes the number of tenants with a known use of a quota, and a row for each role; nothing without quotas
// and roles.
func roleTable(d *config.Document, s *flowcontrol.State, line func(format string, args ...any)) {
	quotas := false
	for _, p := range d.TenantPolicies {
		quotas = quotas || p.Quota.Tokens > 0
	}
	for _, r := range d.Roles {
		quotas = quotas || r.Quota.Tokens > 0
	}
	if quotas {
		line("")
		line("quotas\t%d\ttenants of which the use of a quota is known", s.Metered)
	}
	if len(d.Roles) == 0 {
		return
	}
	line("")
	line("role\tweight\tmost in flight\tclass\thighest class\tquota")
	for _, name := range slices.Sorted(maps.Keys(d.Roles)) {
		r := d.Roles[name]
		line("%s\t%v\t%s\t%s\t%s\t%s", name, r.Weight, most(r.MaxInFlight), cmp.Or(r.Class, "-"), cmp.Or(r.MaxClass, "-"), quotaOf(&r.Quota))
	}
}

// most returns a cap, or - if there is none.
func most(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func quotaOf(q *config.RoleQuota) string {
	if q.Tokens == 0 {
		return "-"
	}
	return fmt.Sprintf("%d tokens in %v", q.Tokens, q.Window)
}
