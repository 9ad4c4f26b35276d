package tracing

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The names of the spans.
const (
	waitSpan = "weir.wait"
	pickSpan = "weir.pick"
)

// The attributes of spans. Names without the prefix weir are from OpenTelemetry's semantic conventions.
const (
	outcomeKey     = attribute.Key("weir.outcome")
	tierKey        = attribute.Key("weir.tier")
	rankKey        = attribute.Key("weir.tier.rank")
	flowKey        = attribute.Key("weir.flow")
	bypassKey      = attribute.Key("weir.bypass")
	requestKey     = attribute.Key("weir.request.id")
	targetModelKey = attribute.Key("weir.target_model")
	limitKey       = attribute.Key("weir.limit")
	fallbacksKey   = attribute.Key("weir.fallbacks")
	servedKey      = attribute.Key("weir.served")
	modelKey       = attribute.Key("gen_ai.request.model")
	errorKey       = attribute.Key("error.type")
	addressKey     = attribute.Key("server.address")
	portKey        = attribute.Key("server.port")
)

// mostText is the longest text in a span, in bytes.
const mostText = 256

// Ended implements extproc.Tracer: it makes the spans of a request.
func (t *Tracer) Ended(r *extproc.Traced) {
	ctx, hasParent := remote(r.Parent)
	wait := t.wait(ctx, r)
	if !hasParent { // so that both spans have one trace
		ctx = trace.ContextWithSpan(ctx, wait)
	}
	if r.Endpoint != "" {
		t.pick(ctx, r)
	}
}

// remote returns a context with the parent's span, and reports whether the parent names one.
func remote(p extproc.Parent) (context.Context, bool) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier(p))
	return ctx, trace.SpanContextFromContext(ctx).IsValid()
}

// carrier is a parent in the propagator's form.
type carrier extproc.Parent

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return c.Traceparent
	case "tracestate":
		return c.Tracestate
	}
	return ""
}

// Set implements propagation.TextMapCarrier. It does nothing.
func (carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (carrier) Keys() []string { return []string{"traceparent", "tracestate"} }

// wait makes the span of the wait: from the offer to the controller, or without an offer from the stream's beginning,
// to the grant or the rejection.
func (t *Tracer) wait(ctx context.Context, r *extproc.Traced) trace.Span {
	_, span := t.tracer.Start(ctx, waitSpan, trace.WithTimestamp(later(r.Begun, r.Offered)))
	if !span.IsRecording() {
		return span
	}
	span.SetAttributes(outcomeKey.String(r.Outcome.String()))
	if r.Tier != "" {
		span.SetAttributes(tierKey.String(text(r.Tier)), rankKey.Int(r.Rank), bypassKey.Bool(r.Bypass))
	}
	target := r.TargetModel
	if target == r.Model {
		target = ""
	}
	setTexts(span, textOf{flowKey, r.Flow}, textOf{modelKey, r.Model}, textOf{targetModelKey, target},
		textOf{requestKey, r.ID}, textOf{limitKey, r.Limit})
	if failed(r.Outcome) {
		span.SetAttributes(errorKey.String(r.Outcome.String()))
		message := ""
		if r.Err != nil {
			message = text(r.Err.Error())
		}
		span.SetStatus(codes.Error, message)
	}
	span.End(trace.WithTimestamp(decided(r)))
	return span
}

// pick makes the span from the grant until the destination was sent to Envoy, or until the request ended unsent.
func (t *Tracer) pick(ctx context.Context, r *extproc.Traced) {
	_, span := t.tracer.Start(ctx, pickSpan, trace.WithTimestamp(decided(r)))
	if !span.IsRecording() {
		return
	}
	if at, err := netip.ParseAddrPort(r.Endpoint); err == nil {
		span.SetAttributes(addressKey.String(at.Addr().String()), portKey.Int(int(at.Port())))
	} else {
		span.SetAttributes(addressKey.String(text(r.Endpoint)))
	}
	span.SetAttributes(fallbacksKey.Int(r.Fallbacks))
	setTexts(span, textOf{servedKey, r.Served})
	end := r.Sent
	if end.IsZero() {
		end = later(r.At, r.Rejected)
	}
	span.End(trace.WithTimestamp(end))
}

// decided returns when the request was granted or rejected. The grant is the offer plus the wait, by the controller's
// clock.
func decided(r *extproc.Traced) time.Time {
	if r.Endpoint != "" || r.Rejected.IsZero() {
		return later(r.Begun, r.Offered).Add(r.Wait)
	}
	return r.Rejected
}

// later returns the second time, or the first if that is zero.
func later(first, second time.Time) time.Time {
	if second.IsZero() {
		return first
	}
	return second
}

// failed reports whether an outcome is an error: neither a served client nor one that has gone.
func failed(o flowcontrol.Outcome) bool {
	return o != flowcontrol.OutcomeDispatched && o != flowcontrol.OutcomeClientCancelled
}

// textOf is an attribute with a text value.
type textOf struct {
	key   attribute.Key
	value string
}

// setTexts sets the attributes that have a value.
func setTexts(span trace.Span, attributes ...textOf) {
	for _, a := range attributes {
		if a.value != "" {
			span.SetAttributes(a.key.String(text(a.value)))
		}
	}
}

// text returns a text in a form valid for OTLP: UTF-8, and bounded. Clients choose some texts.
func text(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), mostText)], "\uFFFD")
}
