package request

// ReadHeaders is the first step. It reports whether the body is needed; if not, the value is complete. An error refuses
// the request, and the value then has the parts read before.
func (q *Request) ReadHeaders(r *Rules, h *Headers, in *Input) (needsBody bool, err error) {
	*q = Request{rules: r, known: in.Models, draw: in.Draw, envoyRead: in.EnvoyRead, declared: noRank}
	q.readPath(h)
	q.needByPath()
	q.PassesOn = r.cfg.PassOn == PassOnPick && r.cheap(h, in.End)
	q.contentType, q.ContentLength = h.values[slotContentType], h.contentLength()
	q.Has, q.Control, q.Own = h.present, h.present&r.names.control, h.own
	q.QueueState = isSet(h.values[slotQueueState])
	model := h.values[r.modelHeader]
	if model == "" && in.EnvoyRead != nil {
		model = in.EnvoyRead.Model
	}
	if model != "" && len(model) <= MaxModelBytes { // a longer one must not label a metric
		q.setModel(model)
	}
	if err := r.cfg.Limits.checkHeaders(h); err != nil {
		return false, err
	}
	if err := r.ambiguous(h); err != nil {
		return false, err
	}
	if len(model) > MaxModelBytes {
		return false, modelTooLong()
	}
	q.Unread = h.present & r.unread
	if q.Subset = in.Subset; q.Subset.Set && len(q.Subset.Members) == 0 {
		return false, ErrEmptySubset
	}
	if err := q.readRequirements(h); err != nil {
		return false, err
	}
	q.identify(h, in.Context)
	q.takeUser(h, in.Context)
	q.Explain = h.explain && r.mayExplain(q.Tenant)
	q.takeRole(h, in.Context)
	q.declare(h, in.Context)
	if in.End && q.API != NoAPI && q.Model == "" && q.needsModel() {
		return false, malformed("model", "The request has no body, so the field \"model\" is missing.")
	}
	q.Class, q.hints = r.classOf(h, q.Role, q.User), r.stated(h)
	q.Deadline = r.deadline(h, in.Now)
	q.readSize(h)
	q.readSession(h)
	if q.needsBody(h, in) {
		return true, r.cfg.Limits.checkAnnounced(q.ContentLength, in.Mode)
	}
	q.complete()
	q.affine(nil, nil)
	return false, nil
}

// complete resolves the parts that depend on the model.
func (q *Request) complete() {
	q.Flow = q.identity.flowKey(q.Model, q.Target)
	q.resolveTier()
	_, q.Size.Model = q.Labels()
	q.Size.Flow = q.Flow
}
