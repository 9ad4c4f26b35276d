package extproc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-epp/weir/pkg/request"
)

// testbench is a server with fakes around it.
type testbench struct {
	t          testing.TB
	server     *Server
	controller *fakeController
	picker     *fakePicker
	registry   *prometheus.Registry
	logged     *logLines
	records    fakeRecords
	envoy      net.Addr    // address of its streams; nil: none
	metadata   metadata.MD // of its streams
}

type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) has(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func newBench(t testing.TB, change func(*Config)) *testbench {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	b := &testbench{
		t: t, controller: &fakeController{grant: make(chan error)}, picker: &fakePicker{address: "10.0.0.1:8000"},
		registry: prometheus.NewRegistry(), logged: &logLines{},
	}
	log := logr.Discard()
	if _, ok := t.(*testing.T); ok {
		log = funcr.New(func(_, args string) {
			b.logged.mu.Lock()
			defer b.logged.mu.Unlock()
			b.logged.lines = append(b.logged.lines, args)
		}, funcr.Options{Verbosity: 1})
	}
	var err error
	b.server, err = NewServer(cfg, Dependencies{
		Controller: b.controller, Picker: b.picker, Log: log, Registerer: b.registry, Rand: rand.New(rand.NewPCG(1, 2)),
		Records: &b.records,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// conversation is one stream of the bench. It lives in a synctest bubble.
type conversation struct {
	*testbench
	stream *fakeStream
	cancel context.CancelFunc
	done   chan error
	first  bool
	mode   modes
	gate   bool // it is a first-token gate's
	ended  bool
}

func (b *testbench) open(mode string) *conversation {
	ctx, cancel := context.WithCancel(context.Background())
	if b.envoy != nil {
		ctx = peer.NewContext(ctx, &peer.Peer{Addr: b.envoy})
	}
	if b.metadata != nil {
		ctx = metadata.NewIncomingContext(ctx, b.metadata)
	}
	c := &conversation{
		testbench: b, stream: &fakeStream{ctx: ctx, in: make(chan *extprocv3.ProcessingRequest, 64)},
		cancel: cancel, done: make(chan error, 1), first: true,
	}
	body, response, _ := strings.Cut(mode, "/")
	c.mode.request = request.BodyMode(slices.Index([]string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX"}, body))
	if response == "FULL_DUPLEX" {
		c.mode.response = modev3.ProcessingMode_FULL_DUPLEX_STREAMED
	} else {
		c.mode.response = modev3.ProcessingMode_BodySendMode(modev3.ProcessingMode_BodySendMode_value[response])
	}
	go func() {
		err := b.server.Process(c.stream)
		cancel()
		c.done <- err
	}()
	return c
}

var requestModes = map[request.BodyMode]modev3.ProcessingMode_BodySendMode{
	request.None: modev3.ProcessingMode_NONE, request.Streamed: modev3.ProcessingMode_STREAMED,
	request.Buffered: modev3.ProcessingMode_BUFFERED, request.Partial: modev3.ProcessingMode_BUFFERED_PARTIAL,
	request.FullDuplex: modev3.ProcessingMode_FULL_DUPLEX_STREAMED,
}

// say sends one message of Envoy.
func (c *conversation) say(m *extprocv3.ProcessingRequest) {
	if c.first {
		c.first = false
		m.ProtocolConfig = &extprocv3.ProtocolConfiguration{
			RequestBodyMode: requestModes[c.mode.request], ResponseBodyMode: c.mode.response,
			SendBodyWithoutWaitingForHeaderResponse: c.gate,
		}
	}
	c.stream.in <- m
}

// heard renders the replies since the last call, joined by "; ".
func (c *conversation) heard() string {
	var lines []string
	for _, m := range c.stream.take() {
		lines = append(lines, render(m))
	}
	return strings.Join(lines, "; ")
}

// end half-closes the stream, and waits for its handler.
func (c *conversation) end() {
	c.t.Helper()
	if c.ended {
		return
	}
	c.ended = true
	close(c.stream.in)
	if err := <-c.done; err != nil {
		c.t.Errorf("Process: %v, want nil: to Envoy an error is a failed processor", err)
	}
	synctest.Wait()
}

// settled ends the stream, and checks that Weir holds nothing and that each of n streams had exactly one outcome.
func (c *conversation) settled(n int) {
	c.t.Helper()
	c.end()
	if c.controller.outcomes != n {
		c.t.Errorf("%d outcomes for %d streams", c.controller.outcomes, n)
	}
	if got := c.logged.has(`"msg"="request"`); got != n {
		c.t.Errorf("%d lines of requests in the log for %d outcomes", got, n)
	}
	for _, l := range c.controller.leases {
		if len(l.completed) != 1 {
			c.t.Errorf("lease completed %d times, want once", len(l.completed))
		}
	}
	if got := c.server.memory.bytes(); got != 0 {
		c.t.Errorf("%d bytes of bodies held at the end", got)
	}
	if got := c.server.Streams(); got != 0 {
		c.t.Errorf("%d streams at the end", got)
	}
}

// render writes a reply as one line.
func render(m *extprocv3.ProcessingResponse) string {
	var w []string
	common := func(name string, r *extprocv3.CommonResponse) {
		w = append(w, name)
		for _, h := range r.GetHeaderMutation().GetSetHeaders() {
			w = append(w, "+"+h.GetHeader().GetKey()+"="+headerValue(h.GetHeader()))
		}
		for _, h := range r.GetHeaderMutation().GetRemoveHeaders() {
			w = append(w, "-"+h)
		}
		if r.GetClearRouteCache() {
			w = append(w, "clear-route")
		}
		switch b := r.GetBodyMutation().GetMutation().(type) {
		case *extprocv3.BodyMutation_Body:
			w = append(w, "body="+string(b.Body))
		case *extprocv3.BodyMutation_ClearBody:
			w = append(w, "cleared")
		case *extprocv3.BodyMutation_StreamedResponse:
			text := string(b.StreamedResponse.Body)
			if len(text) > 100 {
				text = fmt.Sprintf("(%d bytes)", len(text))
			}
			w = append(w, "chunk="+text)
			if b.StreamedResponse.EndOfStream {
				w = append(w, "end")
			}
		}
	}
	switch r := m.GetResponse().(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders:
		common("headers", r.RequestHeaders.GetResponse())
	case *extprocv3.ProcessingResponse_RequestBody:
		common("body", r.RequestBody.GetResponse())
	case *extprocv3.ProcessingResponse_RequestTrailers:
		w = append(w, "trailers")
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		common("response-headers", r.ResponseHeaders.GetResponse())
	case *extprocv3.ProcessingResponse_ResponseBody:
		common("response-body", r.ResponseBody.GetResponse())
	case *extprocv3.ProcessingResponse_ResponseTrailers:
		w = append(w, "response-trailers")
	case *extprocv3.ProcessingResponse_ImmediateResponse:
		w = append(w, fmt.Sprintf("immediate %d %s", r.ImmediateResponse.GetStatus().GetCode(), r.ImmediateResponse.GetDetails()))
	case nil:
	}
	if v := m.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()[request.DestinationHeader]; v != nil {
		w = append(w, "meta="+v.GetStringValue())
	}
	if linkOf(m) != "" {
		w = append(w, "linked")
	}
	if o := m.GetModeOverride(); o != nil {
		w = append(w, "override="+o.GetRequestBodyMode().String()+"/"+o.GetResponseBodyMode().String())
		if o.GetResponseHeaderMode() != modev3.ProcessingMode_SEND {
			w = append(w, "no-headers")
		}
		if o.GetResponseTrailerMode() != modev3.ProcessingMode_SEND {
			w = append(w, "WITHOUT COMPLETION")
		}
	}
	if d := m.GetOverrideMessageTimeout(); d != nil {
		w = append(w, "timeout="+d.AsDuration().String())
	}
	return strings.Join(w, " ")
}
