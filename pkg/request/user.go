package request

// takeUser reads the user of the tenant from the sources of the second level, in their order. A user is known by its
// hash if keys are hashed, or if its name is Anonymous.
func (q *Request) takeUser(h *Headers, c Context) {
	r := q.rules
	if len(r.userIn) == 0 {
		return
	}
	q.User = Anonymous
	for i := range r.userIn {
		v := r.userIn[i].lookup(h, c)
		if v == "" {
			continue
		}
		if r.cfg.HashFlowKeys || v == Anonymous {
			q.User = hashedFlow(v)
		} else {
			q.User = bounded(v)
		}
		return
	}
}
