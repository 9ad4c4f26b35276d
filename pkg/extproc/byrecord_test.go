package extproc

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	logv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// log sends records on a stream of Envoy's access log, and waits until they are read.
func (b *testbench) log(entries ...*logv3.HTTPAccessLogEntry) {
	b.t.Helper()
	stream := &fakeLog{messages: []*alsv3.StreamAccessLogsMessage{{LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{
		HttpLogs: &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: entries},
	}}}}
	if err := b.server.StreamAccessLogs(stream); err != nil {
		b.t.Error(err)
	}
	synctest.Wait()
}

type fakeLog struct {
	grpc.ServerStream
	messages []*alsv3.StreamAccessLogsMessage
}

func (f *fakeLog) SendAndClose(*alsv3.StreamAccessLogsResponse) error { return nil }

func (f *fakeLog) Recv() (*alsv3.StreamAccessLogsMessage, error) {
	if len(f.messages) == 0 {
		return nil, io.EOF
	}
	m := f.messages[0]
	f.messages = f.messages[1:]
	return m, nil
}

// counted returns the value of a counter.
func counted(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}

func (b *testbench) records(outcome fate) float64 { return counted(b.server.metrics.records[outcome]) }

// placedWith lets a request of 400 bytes and at most 500 tokens go, and returns the ID that Envoy was given for its
// records.
func (c *conversation) placedWith() (id string) {
	c.t.Helper()
	c.say(chat("x-gateway-model-name", "m"))
	c.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":500}`, true))
	for _, m := range c.stream.take() {
		if m.GetDynamicMetadata() != nil {
			id = m.GetDynamicMetadata().GetFields()[weirNamespace].GetStructValue().GetFields()[requestKey].GetStringValue()
		}
	}
	return id
}

func byLog(c *Config) {
	inTokens(c)
	c.Usage = UsageALS
}

// answered lets a streamed answer begin and end.
func (c *conversation) answered(status string) {
	c.say(responseHeaders(status, false, "content-type", "text/event-stream"))
	c.heard()
	c.end()
}

// wantCharged fails the test unless the lease was settled at once, without a cost, and then told exactly these.
func (b *testbench) wantCharged(lease int, want ...fairqueue.Cost) {
	b.t.Helper()
	b.controller.mu.Lock()
	defer b.controller.mu.Unlock()
	l := b.controller.leases[lease]
	if len(l.completed) != 1 || l.completed[0].Cost != fairqueue.UnknownCost || !slices.Equal(l.usage, want) {
		b.t.Errorf("completed with %v, then told %v; want once, then %v", l.completed, l.usage, want)
	}
}

// wantNothingHeld fails the test if anything of a request is still there.
func (b *testbench) wantNothingHeld() {
	b.t.Helper()
	if named, waiting := b.server.roll.named(), b.server.roll.awaited(); named != 0 || waiting != 0 {
		b.t.Errorf("%d requests can be named, %d wait", named, waiting)
	}
}

// What a request has cost by the record of the access log, whether that comes before the end of its stream or after it: its
// usage, once; without usage the estimate at least; and nothing if no engine was reached.
func TestChargedByRecord(t *testing.T) {
	const estimated = 100 + 2*500
	flagged := func(f *logv3.ResponseFlags, numbers map[string]any) func(string) *logv3.HTTPAccessLogEntry {
		return func(id string) *logv3.HTTPAccessLogEntry {
			e := entryOf(id, numbers)
			e.CommonProperties.ResponseFlags = f
			return e
		}
	}
	for _, c := range []struct {
		name   string
		status string
		record func(id string) *logv3.HTTPAccessLogEntry
		want   fairqueue.Cost
		fate   fate
	}{
		{"usage", "200", flagged(nil, used(120, 30)), 120 + 60, recordUsed},
		{"usage, no status seen", "", flagged(nil, used(120, 30)), 120 + 60, recordUsed},
		{"no usage", "200", flagged(nil, nil), estimated, recordEmpty},
		{"half of it", "200", flagged(nil, map[string]any{"output": 600.0}), 100 + 1200, recordEmpty},
		{"nonsense", "200", flagged(nil, used(120, -30)), estimated, recordInvalid},
		{"nonsense of the cache", "200", flagged(nil, map[string]any{"input": 1.0, "output": 1.0, "cached": -1.0}), estimated, recordInvalid},
		{"absurd", "200", flagged(nil, used(1e300, 1e300)), fairqueue.MaxCost, recordUsed},
		{"the client leaves", "200", flagged(&logv3.ResponseFlags{DownstreamRemoteReset: true}, used(90, 30)), estimated, recordUsed},
		{"the client leaves, its prompt was longer than estimated", "200", flagged(&logv3.ResponseFlags{DownstreamRemoteReset: true}, used(2000, 30)), 2000 + 2*500, recordUsed},
		{"the client leaves a long answer", "200", flagged(&logv3.ResponseFlags{DownstreamConnectionTermination: true}, used(120, 600)), 120 + 1200, recordUsed},
		{"the engine breaks off", "200", flagged(&logv3.ResponseFlags{UpstreamRemoteReset: true}, nil), estimated, recordEmpty},
		{"the engine refuses", "400", flagged(nil, nil), 1, recordEmpty},
		{"the engine has no room", "503", flagged(nil, nil), 1, recordEmpty},
		{"nobody was reached", "503", flagged(&logv3.ResponseFlags{UpstreamConnectionFailure: true}, nil), 1, recordEmpty},
		{"Envoy's 503 for an engine that breaks off", "503", flagged(&logv3.ResponseFlags{UpstreamConnectionTermination: true}, nil), estimated, recordEmpty},
	} {
		for _, before := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				inBubble(t, "FULL_DUPLEX/NONE", byLog, func(conv *conversation) {
					id := conv.placedWith()
					if c.status != "" {
						conv.say(responseHeaders(c.status, false))
						conv.heard()
					}
					if before {
						conv.log(c.record(id))
					}
					conv.end()
					if !before {
						conv.wantCharged(0)
						time.Sleep(recordWait - time.Nanosecond)
						conv.log(c.record(id))
					}
					conv.wantCharged(0, c.want)
					conv.log(c.record(id)) // a second one
					time.Sleep(2 * recordWait)
					conv.wantCharged(0, c.want)
					if conv.records(c.fate) != 1 || conv.records(recordLate) != 1 {
						t.Errorf("%v counted as %s, %v as late", conv.records(c.fate), fateLabels[c.fate], conv.records(recordLate))
					}
					conv.wantNothingHeld()
				})
			})
		}
	}
}

// If Envoy reached no model server, however long it tried, the request costs 1; if one refused it after that time, its
// room.
func TestNobodyWasReached(t *testing.T) {
	for _, c := range []struct {
		flags *logv3.ResponseFlags
		want  fairqueue.Cost
	}{
		{&logv3.ResponseFlags{UpstreamConnectionFailure: true}, 1},
		{&logv3.ResponseFlags{}, 100 + 2*500},
	} {
		inBubble(t, "FULL_DUPLEX/NONE", byLog, func(conv *conversation) {
			id := conv.placedWith()
			time.Sleep(3 * time.Second)
			conv.say(responseHeaders("503", true))
			conv.end()
			e := entryOf(id, nil)
			e.CommonProperties.ResponseFlags, e.Response.ResponseCode.Value = c.flags, 503
			conv.log(e)
			conv.wantCharged(0, c.want)
		})
	}
}

// A request that needs no record is held for none: one that was preempted, one of which nothing was sent, and with other
// ways to learn the usage.
func TestRequestsWithoutRecords(t *testing.T) {
	for _, way := range []UsageWay{UsageTrailers, UsageBody, UsageNone} {
		inBubble(t, "FULL_DUPLEX/NONE", func(c *Config) { inTokens(c); c.Usage = way }, func(c *conversation) {
			if id := c.placedWith(); id != "" {
				t.Errorf("%s: has the ID %s", way, id)
			}
			c.settled(1)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byLog)
		b.controller.preempt = make(chan struct{})
		c := b.open("BUFFERED/NONE")
		c.say(chat("x-gateway-model-name", "m"))
		c.heard()
		if !b.controller.leases[0].tryPreempt() {
			t.Fatal("not preempted")
		}
		if heard := c.heard(); !strings.Contains(heard, "preempted") {
			t.Fatal(heard)
		}
		c.settled(1)
		if n := len(b.controller.leases[0].usage); n != 0 {
			t.Errorf("told %d times", n)
		}
		b.wantNothingHeld()
	})
	inBubble(t, "BUFFERED/NONE", byLog, func(c *conversation) {
		c.picker.onChosen = c.cancel // the stream breaks before the destination is sent
		c.say(chat("x-gateway-model-name", "m"))
		c.settled(1)
		if cost := c.controller.leases[0].completed[0].Cost; cost != 1 {
			t.Errorf("a request that was not sent costs %d", cost)
		}
		c.wantNothingHeld()
	})
}

// What is passed on without queueing has no usage: it takes nobody's place among those that wait for a record.
func TestPassedOnAwaitsNoRecord(t *testing.T) {
	inBubble(t, "NONE/NONE", byLog, func(c *conversation) {
		c.say(requestHeaders(true, ":method", "GET", ":path", "/v1/models"))
		for _, m := range c.stream.take() {
			if got := m.GetDynamicMetadata().GetFields()[weirNamespace].GetStructValue().GetFields()[requestKey]; got != nil {
				t.Errorf("it has the ID %s", got)
			}
		}
		c.answered("200")
		c.wantNothingHeld()
	})
}

// What an answer that was cut short reports is not counted as what answers use.
func TestRecordOfACutAnswerIsNotCounted(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		id := c.placedWith()
		c.answered("200")
		e := entryOf(id, used(120, 30))
		e.CommonProperties.ResponseFlags = &logv3.ResponseFlags{DownstreamRemoteReset: true}
		c.log(e)
		if got := counted(c.server.metrics.usageTokens.WithLabelValues("output")); got != 0 {
			t.Errorf("%v tokens of output", got)
		}
	})
}

// With cost: requests the usage is counted, and nobody is charged for it.
func TestRecordsWithoutCosts(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", func(c *Config) { c.Usage = UsageALS }, func(c *conversation) {
		id := c.placedWith()
		c.answered("200")
		c.log(entryOf(id, used(120, 30)))
		if got := counted(c.server.metrics.usageTokens.WithLabelValues("output")); got != 30 {
			t.Errorf("%v tokens of output", got)
		}
		c.wantCharged(0)
		c.wantNothingHeld()
	})
}

// The first record of a request counts, also of several that come before the end of its stream.
func TestSecondRecordBeforeTheEnd(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		id := c.placedWith()
		c.say(responseHeaders("200", false))
		c.heard()
		c.log(entryOf(id, used(120, 30)), entryOf(id, used(1, 1)))
		c.end()
		c.wantCharged(0, 120+60)
		if c.records(recordUsed) != 1 || c.records(recordLate) != 1 {
			t.Errorf("%v used, %v late", c.records(recordUsed), c.records(recordLate))
		}
	})
}

// Where Weir does not see the status (response headers SKIPped), the record has it.
func TestStatusFromTheRecord(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		id := c.placedWith()
		c.end()
		refused := entryOf(id, nil)
		refused.Response.ResponseCode = wrapperspb.UInt32(400)
		c.log(refused)
		c.wantCharged(0, 1)
	})
}

// A panic while charging those whose wait is over keeps nobody else from being charged.
func TestPanicWithoutRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byLog)
		for range 2 {
			c := b.open("FULL_DUPLEX/NONE")
			c.placedWith()
			c.answered("200")
		}
		b.controller.mu.Lock()
		b.controller.boom = "OnUsage"
		b.controller.mu.Unlock()
		time.Sleep(recordWait)
		synctest.Wait()
		if got := counted(b.server.metrics.panics); got != 1 {
			t.Errorf("%v panics", got)
		}
		b.wantCharged(1, 100+2*500)
		b.wantNothingHeld()
	})
}

// waitingLog is a stream of an access log that brings no more than it is told.
type waitingLog struct {
	fakeLog
	next  chan *logv3.HTTPAccessLogEntry
	ended chan error
}

func (f *waitingLog) Recv() (*alsv3.StreamAccessLogsMessage, error) {
	entry, ok := <-f.next
	if !ok {
		return nil, io.EOF
	}
	return &alsv3.StreamAccessLogsMessage{LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{
		HttpLogs: &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: []*logv3.HTTPAccessLogEntry{entry}},
	}}, nil
}

// openLog opens a stream of an access log.
func (b *testbench) openLog() *waitingLog {
	f := &waitingLog{next: make(chan *logv3.HTTPAccessLogEntry), ended: make(chan error, 1)}
	go func() { f.ended <- b.server.StreamAccessLogs(f) }()
	synctest.Wait()
	return f
}

// lives reports whether a stream is still served.
func (f *waitingLog) lives(t *testing.T) bool {
	t.Helper()
	select {
	case err := <-f.ended:
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("it ended with %v", err)
		}
		return false
	default:
		return true
	}
}

// However many streams somebody opens who knows no request, those go on that have brought records of ours; he ends his
// own, the oldest first. If all have brought some, the one goes whose last record is the oldest.
func TestTooManyLogs(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		var all []*waitingLog
		open := func() *waitingLog {
			all = append(all, c.openLog())
			return all[len(all)-1]
		}
		defer func() {
			for _, f := range all {
				close(f.next)
			}
		}()
		proven := func(f *waitingLog) {
			f.next <- entryOf(c.server.roll.add(&fakeLease{}, false).id, used(1, 1))
			synctest.Wait()
		}
		first, second := open(), open()
		stranger := open()
		proven(first)
		proven(second)
		stranger.next <- entryOf("made up", used(1, 1))
		later := open()
		for len(all) < maxLogStreams {
			open()
		}
		if !stranger.lives(t) {
			t.Error("a stream has ended before there were too many")
		}
		open()
		if stranger.lives(t) || !later.lives(t) {
			t.Error("the oldest stranger has to go, and nobody else")
		}
		for range 2 * maxLogStreams {
			open()
		}
		if !first.lives(t) || !second.lives(t) || later.lives(t) {
			t.Error("strangers keep out those that have brought records")
		}
		for _, f := range all[len(all)-maxLogStreams+2:] {
			proven(f)
		}
		proven(first)
		open()
		if second.lives(t) || !first.lives(t) {
			t.Error("the one whose last record is the oldest has to go")
		}
	})
}

// A record that makes the queue panic costs the process nothing but its stream.
func TestPanicByRecord(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", byLog, func(c *conversation) {
		id := c.placedWith()
		c.answered("200")
		c.controller.boom = "OnUsage"
		c.log(entryOf(id, used(120, 30)))
		if got := counted(c.server.metrics.panics); got != 1 {
			t.Errorf("%v panics", got)
		}
		c.wantNothingHeld()
	})
}

// named returns how many requests a record can name.
func (r *roll) named() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}
