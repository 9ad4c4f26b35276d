package tracing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// memory is an exporter that keeps the spans.
type memory struct{ *tracetest.InMemoryExporter }

func (memory) Start(context.Context) error    { return nil }
func (memory) Shutdown(context.Context) error { return nil } // which would forget them

// spansOf returns the spans of a request by their names.
func spansOf(t *testing.T, sampler sdktrace.Sampler, r *extproc.Traced) map[string]tracetest.SpanStub {
	t.Helper()
	spans := map[string]tracetest.SpanStub{}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		cfg := DefaultConfig()
		cfg.Sampler, cfg.Version = sampler, "1.2.3"
		kept := memory{tracetest.NewInMemoryExporter()}
		tracer := New(cfg, kept, logr.Discard())
		tracer.Ended(r)
		stop()
		if err := tracer.Run(ctx); err != nil {
			t.Error(err)
		}
		for _, s := range kept.GetSpans() {
			if _, twice := spans[s.Name]; twice {
				t.Errorf("%s is there twice", s.Name)
			}
			spans[s.Name] = s
		}
	})
	return spans
}

// text renders a span: from when to when, in seconds after noon, its status and its attributes.
func rendered(s tracetest.SpanStub) string {
	var attributes []string
	for _, a := range s.Attributes {
		attributes = append(attributes, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	slices.Sort(attributes)
	return fmt.Sprintf("%s %s-%s %s %s%s", s.Name, s.StartTime.Sub(noon), s.EndTime.Sub(noon), strings.Join(attributes, " "), s.Status.Code,
		" "+s.Status.Description)
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

const (
	sampled    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	notSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// served is a request that waited from 1 s to 4 s, and had its destination sent at 5 s.
func served() *extproc.Traced {
	return &extproc.Traced{
		Ended: extproc.Ended{
			At: at(60), ID: "r-1", Flow: "team-a", Tier: "critical", Model: "chat", TargetModel: "chat-v2", Wait: 3 * time.Second,
			Endpoint: "10.0.0.1:8000", Outcome: flowcontrol.OutcomeDispatched, Status: 200,
		},
		Parent: extproc.Parent{Traceparent: sampled, Tracestate: "vendor=x"},
		Begun:  at(0), Offered: at(1), Sent: at(5), Rank: 1, Fallbacks: 2,
	}
}

// rejected is a request that was rejected by a limit after 30 s in the queue.
func rejected() *extproc.Traced {
	return &extproc.Traced{
		Ended: extproc.Ended{
			At: at(31), Flow: "team-a", Tier: "critical", Model: "chat", TargetModel: "chat", Outcome: flowcontrol.OutcomeTTLExpired,
			Err: errors.New("waited longer than its TTL"), Status: 503,
		},
		Begun: at(0), Offered: at(1), Rejected: at(31), Limit: "queueTTL",
	}
}

// A request has a span for its wait, from its offer to its grant or rejection, and one for the pick of its endpoint, from the
// grant until the destination was sent. They say what was decided, and why.
func TestSpans(t *testing.T) {
	change := func(r *extproc.Traced, f func(*extproc.Traced)) *extproc.Traced { f(r); return r }
	for name, test := range map[string]struct {
		request *extproc.Traced
		want    []string
	}{
		"served": {served(), []string{
			"weir.wait 1s-4s gen_ai.request.model=chat weir.bypass=false weir.flow=team-a weir.outcome=dispatched weir.request.id=r-1 " +
				"weir.target_model=chat-v2 weir.tier.rank=1 weir.tier=critical Unset ",
			"weir.pick 4s-5s server.address=10.0.0.1 server.port=8000 weir.fallbacks=2 Unset ",
		}},
		"bypass": {change(served(), func(r *extproc.Traced) { r.Wait, r.Bypass, r.TargetModel, r.ID = 0, true, "chat", "" }), []string{
			"weir.wait 1s-1s gen_ai.request.model=chat weir.bypass=true weir.flow=team-a weir.outcome=dispatched weir.tier.rank=1 weir.tier=critical Unset ",
			"weir.pick 1s-5s server.address=10.0.0.1 server.port=8000 weir.fallbacks=2 Unset ",
		}},
		"a fallback served": {change(served(), func(r *extproc.Traced) { r.Endpoint, r.Served = "[fd00::1]:8000", "[fd00::2]:8000" }), []string{
			"weir.wait 1s-4s gen_ai.request.model=chat weir.bypass=false weir.flow=team-a weir.outcome=dispatched weir.request.id=r-1 " +
				"weir.target_model=chat-v2 weir.tier.rank=1 weir.tier=critical Unset ",
			"weir.pick 4s-5s server.address=fd00::1 server.port=8000 weir.fallbacks=2 weir.served=[fd00::2]:8000 Unset ",
		}},
		"preempted before its destination was sent": {change(served(), func(r *extproc.Traced) {
			r.Outcome, r.Err, r.Sent, r.Rejected = flowcontrol.OutcomePreempted, errors.New("preempted"), time.Time{}, at(7)
		}), []string{
			"weir.wait 1s-4s error.type=preempted gen_ai.request.model=chat weir.bypass=false weir.flow=team-a weir.outcome=preempted " +
				"weir.request.id=r-1 weir.target_model=chat-v2 weir.tier.rank=1 weir.tier=critical Error preempted",
			"weir.pick 4s-7s server.address=10.0.0.1 server.port=8000 weir.fallbacks=2 Unset ",
		}},
		"granted to a client that has gone": {change(served(), func(r *extproc.Traced) {
			r.Outcome, r.Sent, r.At = flowcontrol.OutcomeClientCancelled, time.Time{}, at(6)
		}), []string{
			"weir.wait 1s-4s gen_ai.request.model=chat weir.bypass=false weir.flow=team-a weir.outcome=client-cancelled weir.request.id=r-1 " +
				"weir.target_model=chat-v2 weir.tier.rank=1 weir.tier=critical Unset ",
			"weir.pick 4s-6s server.address=10.0.0.1 server.port=8000 weir.fallbacks=2 Unset ",
		}},
		"rejected": {rejected(), []string{
			"weir.wait 1s-31s error.type=ttl-expired gen_ai.request.model=chat weir.bypass=false weir.flow=team-a weir.limit=queueTTL " +
				"weir.outcome=ttl-expired weir.tier.rank=0 weir.tier=critical Error waited longer than its TTL",
		}},
		"refused before the queue": {change(rejected(), func(r *extproc.Traced) {
			r.Outcome, r.Tier, r.Flow, r.Limit, r.Offered, r.Rejected = flowcontrol.OutcomeBadRequest, "", "", "", time.Time{}, at(2)
		}), []string{
			"weir.wait 0s-2s error.type=bad-request gen_ai.request.model=chat weir.outcome=bad-request Error waited longer than its TTL",
		}},
		"a panic, without a rejection": {change(rejected(), func(r *extproc.Traced) {
			r.Outcome, r.Err, r.Rejected, r.Limit = flowcontrol.OutcomeInternal, nil, time.Time{}, ""
		}), []string{
			"weir.wait 1s-1s error.type=internal gen_ai.request.model=chat weir.bypass=false weir.flow=team-a weir.outcome=internal " +
				"weir.tier.rank=0 weir.tier=critical Error ",
		}},
	} {
		spans := spansOf(t, sdktrace.AlwaysSample(), test.request)
		if len(spans) != len(test.want) {
			t.Errorf("%s: %d spans, want %d", name, len(spans), len(test.want))
		}
		for _, want := range test.want {
			span, _, _ := strings.Cut(want, " ")
			if got := rendered(spans[span]); got != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
		}
	}
}

// The client that has gone is no error, and every other end but a dispatch is one.
func TestFailed(t *testing.T) {
	for o := range flowcontrol.Outcome(flowcontrol.NumOutcomes) {
		if want := o != flowcontrol.OutcomeDispatched && o != flowcontrol.OutcomeClientCancelled; failed(o) != want {
			t.Errorf("%s: %v", o, failed(o))
		}
	}
}

// Both spans are children of the parent's, in its trace and with its state. Without a valid parent the wait is the root, and
// the pick its child.
func TestParents(t *testing.T) {
	request := served()
	spans := spansOf(t, DefaultConfig().Sampler, request)
	for _, name := range []string{waitSpan, pickSpan} {
		s := spans[name]
		if s.Parent.SpanID().String() != "b7ad6b7169203331" || s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || !s.Parent.IsRemote() {
			t.Errorf("%s: parent %+v", name, s.Parent)
		}
		if got := s.SpanContext.TraceState().String(); got != "vendor=x" {
			t.Errorf("%s: state %q", name, got)
		}
	}
	for _, parent := range []extproc.Parent{
		{},
		{Traceparent: "nonsense"},
		{Traceparent: strings.Repeat("0", 55)},
		{Traceparent: "00-00000000000000000000000000000000-b7ad6b7169203331-01"},
		{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"},
		{Traceparent: "ff" + sampled[2:]},
		{Traceparent: strings.ToUpper(sampled)},
		{Traceparent: sampled + "\xff"},
	} {
		request.Parent = parent
		spans := spansOf(t, DefaultConfig().Sampler, request)
		wait, pick := spans[waitSpan], spans[pickSpan]
		if wait.Parent.IsValid() || !wait.SpanContext.IsValid() || pick.Parent.SpanID() != wait.SpanContext.SpanID() ||
			pick.SpanContext.TraceID() != wait.SpanContext.TraceID() {
			t.Errorf("%q: wait %+v under %+v, pick under %+v", parent.Traceparent, wait.SpanContext, wait.Parent, pick.Parent)
		}
	}
	request.Parent = extproc.Parent{Traceparent: sampled, Tracestate: "no state\x00"}
	if s := spansOf(t, DefaultConfig().Sampler, request)[waitSpan]; s.Parent.SpanID().String() != "b7ad6b7169203331" || s.SpanContext.TraceState().Len() != 0 {
		t.Errorf("an invalid state: parent %+v", s.Parent)
	}
}

// The parent decides by default whether there are spans. A ratio bounds them whatever clients say.
func TestSampling(t *testing.T) {
	for name, test := range map[string]struct {
		sampler sdktrace.Sampler
		parent  string
		want    int
	}{
		"sampled by the parent":     {DefaultConfig().Sampler, sampled, 2},
		"not sampled by the parent": {DefaultConfig().Sampler, notSampled, 0},
		"no parent":                 {DefaultConfig().Sampler, "", 2},
		"a ratio of 0":              {sdktrace.TraceIDRatioBased(0), sampled, 0},
		"always":                    {sdktrace.AlwaysSample(), notSampled, 2},
		"never":                     {sdktrace.NeverSample(), "", 0},
	} {
		request := served()
		request.Parent = extproc.Parent{Traceparent: test.parent}
		if got := len(spansOf(t, test.sampler, request)); got != test.want {
			t.Errorf("%s: %d spans, want %d", name, got, test.want)
		}
	}
}

// Texts that clients choose are cut, and are valid UTF-8: otherwise no span of the batch could be sent.
func TestHostileTexts(t *testing.T) {
	request := rejected()
	request.Flow, request.Model, request.TargetModel = "\xff", strings.Repeat("m", 1<<20), strings.Repeat("\xfft", 1<<20)
	request.ID, request.Limit, request.Tier = "a\x80", "\xc3\x28", "\xfe"
	request.Err = errors.New(strings.Repeat("é", 1<<20))
	s := spansOf(t, sdktrace.AlwaysSample(), request)[waitSpan]
	texts := map[string]string{"message": s.Status.Description}
	for _, a := range s.Attributes {
		texts[string(a.Key)] = a.Value.String()
	}
	for name, text := range texts {
		if len(text) > 2*mostText || strings.ToValidUTF8(text, "") != text {
			t.Errorf("%s: %d bytes, %.40q", name, len(text), text)
		}
	}
	if texts["weir.flow"] != "\uFFFD" || texts["weir.request.id"] != "a\uFFFD" || texts["gen_ai.request.model"] != strings.Repeat("m", mostText) {
		t.Errorf("got %.300q", texts)
	}
}

// The process names itself as the variables say.
func TestResource(t *testing.T) {
	s := spansOf(t, sdktrace.AlwaysSample(), served())[waitSpan]
	attributes := s.Resource.String()
	for _, want := range []string{"service.name=weir", "service.version=1.2.3"} {
		if !strings.Contains(attributes, want) {
			t.Errorf("%s lacks %s", attributes, want)
		}
	}
	if s.InstrumentationScope.Name != "github.com/weir-epp/weir" {
		t.Errorf("scope %+v", s.InstrumentationScope)
	}
}
