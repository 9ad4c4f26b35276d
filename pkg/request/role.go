package request

// takeRole resolves the tenant's role: from its policy, or else the first source of roles with a value, or else the
// default. An unlisted role counts as none.
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

// listRole replaces an unlisted role.
func (q *Request) listRole() {
	if _, known := q.rules.roles[q.Role]; !known {
		q.UnknownRole = q.Role != ""
		q.Role = q.rules.cfg.DefaultRole
	}
}

// OfTenant returns the role of a tenant's request, given the role from the sources or "", and the rank of its tier if
// it declares none and names no model.
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
