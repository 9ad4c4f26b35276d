package extproc

import (
	"io"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	logv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weir-epp/weir/pkg/estimate"
)

// encodedLog is a stream of one message, encoded as Envoy sends it.
type encodedLog struct {
	grpc.ServerStream
	bytes []byte
	read  bool
}

func (e *encodedLog) SendAndClose(*alsv3.StreamAccessLogsResponse) error { return nil }

func (e *encodedLog) Recv() (*alsv3.StreamAccessLogsMessage, error) {
	if e.read {
		return nil, io.EOF
	}
	e.read = true
	m := &alsv3.StreamAccessLogsMessage{}
	return m, proto.Unmarshal(e.bytes, m)
}

// fullEntry returns a record with everything that Envoy writes into one, besides what Weir reads.
func fullEntry(id string) *logv3.HTTPAccessLogEntry {
	e := entryOf(id, map[string]any{"input": 120.0, "output": 200.0, "cached": 20.0})
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "192.0.2.10", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 40000},
	}}}
	c := e.GetCommonProperties()
	c.SampleRate = 1
	c.DownstreamRemoteAddress, c.DownstreamLocalAddress, c.DownstreamDirectRemoteAddress = address, address, address
	c.UpstreamRemoteAddress, c.UpstreamLocalAddress, c.UpstreamCluster = address, address, "model_servers"
	c.StartTime = timestamppb.Now()
	for _, d := range []**durationpb.Duration{
		&c.TimeToLastRxByte, &c.TimeToFirstUpstreamTxByte, &c.TimeToLastUpstreamTxByte, &c.TimeToFirstUpstreamRxByte,
		&c.TimeToLastUpstreamRxByte, &c.TimeToFirstDownstreamTxByte, &c.TimeToLastDownstreamTxByte, &c.Duration,
	} {
		*d = &durationpb.Duration{Nanos: 1e6}
	}
	c.UpstreamRequestAttemptCount, c.StreamId = 1, "119359c3-2d62-4b6c-af73-8a972753e5f0"
	e.Request = &logv3.HTTPRequestProperties{
		Scheme: "http", Authority: "inference.example", Path: "/v1/chat/completions", UserAgent: "OpenAI/Python 2.8.1",
		RequestId: "119359c3-2d62-4b6c-af73-8a972753e5f0", RequestHeadersBytes: 400, RequestBodyBytes: 1000,
	}
	e.Response.ResponseCodeDetails, e.Response.ResponseBodyBytes = "via_upstream", 40_000
	return e
}

// One record, from its bytes to the charge, in messages of as many as Envoy has to send at a time.
func BenchmarkRecord(b *testing.B) {
	for _, c := range []struct {
		name    string
		records int
	}{{"alone", 1}, {"of 16", 16}} {
		b.Run(c.name, func(b *testing.B) {
			bench := newBench(b, byLog)
			roll := &bench.server.roll
			one := charge{request: estimate.Request{Flow: "a", Model: "m", Answers: 1}}
			var named []*inLog
			entries := &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{}
			for range c.records {
				q := roll.add(quickLease{}, false)
				named = append(named, q)
				entries.LogEntry = append(entries.LogEntry, fullEntry(q.id))
			}
			bytes, err := proto.Marshal(&alsv3.StreamAccessLogsMessage{LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: entries}})
			if err != nil {
				b.Fatal(err)
			}
			stream := &encodedLog{bytes: bytes}
			b.ReportAllocs()
			for b.Loop() {
				for _, q := range named { // their requests end
					roll.byID[q.id], q.record = q, nil
					roll.await(q, &ending{charge: &one, weights: bench.server.config.Load().Tokens.Weights, status: 200})
				}
				stream.read = false
				if err := bench.server.StreamAccessLogs(stream); err != nil || roll.awaited() != 0 {
					b.Fatalf("%v, %d wait", err, roll.awaited())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*c.records), "µs/record")
			b.ReportMetric(float64(len(bytes)/c.records), "bytes/record")
		})
	}
}
