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
	if _, known := r.roles[q.Role]; !known {
		q.UnknownRole = q.Role != ""
		q.Role = r.cfg.DefaultRole
	}
}
