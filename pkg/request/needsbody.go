package request

// needsBody reports whether the request must be offered with its body.
func (q *Request) needsBody(h *Headers, in *Input) bool {
	if q.PassesOn || in.End || h.upgrades() {
		return false
	}
	q.MayReportUsage = q.mayReportUsage()
	q.asksUsage = q.MayReportUsage && in.AskUsage && !in.Mode.hidden()
	policy := q.rules.cfg.RequestBody
	rewrite := q.Target != q.Model
	lacking := rewrite || q.Model == "" && q.needsModel() || q.asksForNeeds()
	if in.Mode.hidden() {
		q.BodyHidden = policy == BodyAlways || policy == BodyAuto && lacking
		return false
	}
	switch policy {
	case BodyNever:
		return false
	case BodyAlways:
		return true
	default:
		// In FULL_DUPLEX_STREAMED the body arrives anyway, so it is read.
		return lacking || in.Mode == FullDuplex || q.asksUsage || q.asksForPrompt() || q.asksForHints()
	}
}
