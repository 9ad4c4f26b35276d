// Otlpcollector is the OTLP receiver of the OpenTelemetry collector, for tests. It receives spans at a free port of the
// loopback by gRPC and at another by HTTP, and prints one line of JSON with both addresses, {"grpc":…,"http":…}, then
// one line of OTLP's JSON for each request that it gets. It ends when its standard input does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.uber.org/zap"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "otlpcollector:", err)
		os.Exit(1)
	}
}

// addresses are those at which the receiver listens.
type addresses struct {
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	var at addresses
	var err error
	if at.GRPC, err = free(); err != nil {
		return err
	}
	if at.HTTP, err = free(); err != nil {
		return err
	}
	printed := &lines{w: bufio.NewWriter(out)}
	r, err := newReceiver(ctx, at, printed)
	if err != nil {
		return err
	}
	if err := r.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	first, err := json.Marshal(at)
	if err == nil {
		err = printed.print(first)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	return errors.Join(err, r.Shutdown(ctx))
}

// free returns an address of the loopback that nothing listens at.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// newReceiver returns a receiver that prints.
func newReceiver(ctx context.Context, at addresses, printed *lines) (receiver.Traces, error) {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	text := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": at.GRPC}, "http": map[string]any{"endpoint": at.HTTP},
	}})
	if err := text.Unmarshal(config); err != nil {
		return nil, err
	}
	sink, err := consumer.NewTraces(func(_ context.Context, t ptrace.Traces) error {
		line, err := new(ptrace.JSONMarshaler).MarshalTraces(t)
		if err != nil {
			return err
		}
		return printed.print(line)
	})
	if err != nil {
		return nil, err
	}
	settings := receiver.Settings{
		ID: component.NewID(factory.Type()), BuildInfo: component.NewDefaultBuildInfo(),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	settings.Logger = zap.NewNop()
	return factory.CreateTraces(ctx, settings, config, sink)
}

// lines prints one line at a time.
type lines struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (l *lines) print(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(line)
	_ = l.w.WriteByte('\n')
	return l.w.Flush() // has the error of each write
}
