package extproc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// dial returns a real gRPC client of the bench's server, over memory. Call it in a bubble.
func (b *testbench) dial() (client extprocv3.ExternalProcessorClient, stop func()) {
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()))
	extprocv3.RegisterExternalProcessorServer(g, b.server)
	go func() { _ = g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:weir", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		b.t.Fatal(err)
	}
	return extprocv3.NewExternalProcessorClient(conn), func() {
		_ = conn.Close()
		g.Stop()
	}
}

func send(t *testing.T, s extprocv3.ExternalProcessor_ProcessClient, m *extprocv3.ProcessingRequest) {
	t.Helper()
	if err := s.Send(m); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, s extprocv3.ExternalProcessor_ProcessClient) string {
	t.Helper()
	m, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return render(m)
}

// A request that is held for 90 s on a real gRPC stream is granted to the nanosecond, and its lease lives as long as the
// stream.
func TestWireHoldAndGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.controller.hold = true
		client, stop := b.dial()
		defer stop()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := client.Process(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m := chat("x-gateway-model-name", "m")
		m.ProtocolConfig = &extprocv3.ProtocolConfiguration{}
		begun := time.Now()
		send(t, s, m)
		if got := receive(t, s); got != "timeout=35s" {
			t.Errorf("got %s", got)
		}
		time.AfterFunc(90*time.Second, func() { b.controller.grant <- nil })
		if got := receive(t, s); !strings.HasPrefix(got, "headers "+dest) || time.Since(begun) != 90*time.Second {
			t.Errorf("got %s after %v", got, time.Since(begun))
		}
		send(t, s, responseHeaders("200", false))
		if got := receive(t, s); got != "response-headers" {
			t.Errorf("got %s", got)
		}
		time.Sleep(time.Minute)
		if n := len(b.controller.leases[0].completed); n != 0 {
			t.Error("the lease ended before the stream")
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v, want OK", err)
		}
		synctest.Wait()
		if c := b.controller.leases[0].completed; len(c) != 1 || c[0].Status != 200 {
			t.Errorf("completed %+v", c)
		}
	})
}
