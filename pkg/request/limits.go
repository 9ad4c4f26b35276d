package request

import "fmt"

// checkHeaders refuses too many or too large headers.
func (l *Limits) checkHeaders(h *Headers) error {
	if h.bytes > l.MaxHeaderBytes {
		return tooLarge("MaxHeaderBytes", l.MaxHeaderBytes, fmt.Sprintf("The request headers are larger than %d bytes.", l.MaxHeaderBytes))
	}
	if h.total > l.MaxHeaders {
		return tooLarge("MaxHeaders", l.MaxHeaders, fmt.Sprintf("The request has more than %d headers.", l.MaxHeaders))
	}
	return nil
}

// checkAnnounced refuses a body by its announced length, before it is transferred. In BUFFERED_PARTIAL only a part of
// it will come.
func (l *Limits) checkAnnounced(length int64, mode BodyMode) error {
	if mode == Partial {
		return nil
	}
	return l.CheckBody(length)
}

// CheckBody refuses a body longer than MaxBodyBytes.
func (l *Limits) CheckBody(length int64) error {
	if length > l.MaxBodyBytes {
		return tooLarge("MaxBodyBytes", l.MaxBodyBytes, fmt.Sprintf("The request body is larger than %d bytes.", l.MaxBodyBytes))
	}
	return nil
}
