package extproc

import "github.com/weir-epp/weir/pkg/request"

// warnOfRequest warns of configurations, visible in a request's headers, that Weir cannot follow.
func (st *mainStream) warnOfRequest() {
	s, q, m := st.server, &st.request, st.modes
	if q.Unread != 0 {
		s.warnUnread(q.Unread)
	}
	if st.cfg.IncludeUsage && q.MayReportUsage && (!m.showsResponse || m.request == request.None || m.request == request.Streamed) {
		s.once.warn(s.log, "includeUsage", "tokens.includeUsage cannot ask for the usage of streamed answers: "+
			"that needs a request_body_mode of BUFFERED or FULL_DUPLEX_STREAMED, and a response_body_mode of STREAMED or "+
			"FULL_DUPLEX_STREAMED", "request_body_mode", m.request.String(), "response_body_mode", m.response.String())
	}
	if q.BodyHidden {
		s.once.warn(s.log, "mode "+m.request.String(),
			"Envoy's request_body_mode does not let the body be read before the destination is named, so the model "+
				"is known from the trusted header only, and is not rewritten, and the needs of requests are not known: use BUFFERED",
			"mode", m.request.String())
	}
}

// warnUnread warns once of each synonym in a request that the configuration does not name. Otherwise a tenant in an
// unexpected flow would have no explanation.
func (s *shared) warnUnread(unread request.Slots) {
	if unread &^= request.Slots(s.unreadSaid.Load()); unread == 0 {
		return
	}
	for _, synonym := range request.Synonyms {
		bit := uint64(synonym.Set())
		if uint64(unread)&bit == 0 || s.unreadSaid.Or(bit)&bit != 0 {
			continue
		}
		entry := synonym.Header
		if synonym.Key == "flows.key" {
			entry = "header:" + entry
		}
		s.once.warn(s.log, synonym.Header, "requests come with the header "+synonym.Header+", which is not read, and removed "+
			"before the model server: if your gateway sets it, and clients cannot, name it in "+synonym.Key,
			"header", synonym.Header, "key", synonym.Key, "entry", entry)
	}
}
