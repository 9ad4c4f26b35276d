package doctor

import (
	"fmt"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

const (
	defaultMessageTimeout = 200 * time.Millisecond
	defaultIdleTimeout    = 5 * time.Minute
	// leastGateTimeout is the least time that a gate should wait for a first token: clients rarely wait longer than a
	// minute.
	leastGateTimeout = time.Minute
)

// messageTimeout checks that Envoy holds a request as long as Weir does: by message_timeout, or by accepting the longer
// timeout that Weir asks for. FULL_DUPLEX_STREAMED has no such timeout.
func messageTimeout(e *Envoy, w Weir, report reporter) {
	wait, asked := w.longestWait(), w.longestAsked()
	for _, u := range w.of(e, false) {
		if u.config.GetProcessingMode().GetRequestBodyMode() == extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED {
			continue
		}
		timeout, stated := u.messageTimeout()
		most := u.config.GetMaxMessageTimeout().AsDuration()
		if timeout > wait || most >= asked {
			continue
		}
		found := fmt.Sprintf("message_timeout: %s%s, max_message_timeout: %s; requests wait up to %s", seconds(timeout), stated,
			seconds(most), seconds(wait))
		report(u.at("max_message_timeout"), found, "max_message_timeout: 3600s")
	}
}

// messageTimeout returns the message timeout, and a remark if it is the default.
func (u use) messageTimeout() (time.Duration, string) {
	if u.config.GetMessageTimeout() == nil {
		return defaultMessageTimeout, " (the default)"
	}
	return u.config.GetMessageTimeout().AsDuration(), ""
}

// streamIdleTimeout checks the idle timeout of the route, or else of the connection manager; 0: none.
func streamIdleTimeout(e *Envoy, w Weir, report reporter) {
	wait := w.longestWait()
	for _, u := range w.of(e, false) {
		timeout, stated := defaultIdleTimeout, " (the default)"
		at, key := u.manager.at.add("stream_idle_timeout"), "stream_idle_timeout"
		if own := u.manager.config.GetStreamIdleTimeout(); own != nil {
			timeout, stated = own.AsDuration(), ""
		}
		if u.route != nil && u.route.config.GetRoute().GetIdleTimeout() != nil {
			timeout, stated = u.route.config.GetRoute().GetIdleTimeout().AsDuration(), ""
			at, key = u.route.at.add("route", "idle_timeout"), "idle_timeout"
		}
		if timeout != 0 && timeout <= wait {
			report(at, fmt.Sprintf("%s%s; requests wait up to %s", seconds(timeout), stated, seconds(wait)), key+": 3600s")
		}
	}
}

// gateTimeout checks the message timeout of first-token gates.
func gateTimeout(e *Envoy, w Weir, report reporter) {
	for _, u := range w.of(e, true) {
		if timeout, stated := u.messageTimeout(); timeout < leastGateTimeout {
			report(u.at("message_timeout"), seconds(timeout)+stated, "message_timeout: 600s")
		}
	}
}
