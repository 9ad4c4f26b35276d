package request

// takeRole resolves the tenant's role: that of its policy, or else the first that the sources of roles find, or else the
// default. A role that the configuration does not list counts as none.
func (q *Request) takeRole(h *Headers, c Context) {
	r := q.rules
	if len(r.roles) == 0 {
		return
	}
	if p, ok := q.policy(); ok {
		q.Role = p.role
	}
	for i := 0; i < len(r.roleIn) && q.Role == ""; i++ {
		q.Role = r.roleIn[i].lookup(h, c)
	}
	q.listRole()
}

// listRole replaces a role that the configuration does not list.
func (q *Request) listRole() {
	if _, known := q.rules.roles[q.Role]; !known {
		q.UnknownRole = q.Role != ""
		q.Role = q.rules.cfg.DefaultRole
	}
}

// OfTenant returns the role of a request of a tenant for which the sources of roles find role, or "", and the rank of its tier
// if it declares none and names no model.
func (r *Rules) OfTenant(tenant, role string) (listed string, tier int) {
	q := Request{rules: r, Tenant: tenant, Role: role, declared: noRank}
	if len(r.roles) == 0 {
		q.Role = ""
	} else {
		if p, ok := q.policy(); ok && p.role != "" {
			q.Role = p.role
		}
		q.listRole()
	}
	q.resolveTier()
	return q.Role, q.Tier
}
