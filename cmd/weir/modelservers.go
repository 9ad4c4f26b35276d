package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// modelServers configures simulated model servers: their slots, the service time of each request, and its jitter as a
// fraction to either side. The zero value answers at once. Loose ones are up to 1 ms late, and take less processor time.
type modelServers struct {
	Slots   int
	Service time.Duration
	Jitter  float64
	Loose   bool
}

func (m modelServers) config() modelsim.Config {
	if m.Slots == 0 {
		return modelsim.Instant()
	}
	config := modelsim.Fixed(m.Slots, m.Service)
	config.Engine.Jitter = m.Jitter
	config.Punctual = !m.Loose
	return config
}

// startModels starts simulated model servers in a process of their own, so that their processor time can be measured
// separately and the load generator does not delay them.
func startModels(s *scene.Scene, name string, count int, how modelServers) (*scene.Process, []string, error) {
	text, err := json.Marshal(how)
	if err != nil {
		return nil, nil, fmt.Errorf("model servers: %w", err)
	}
	return s.Server(name, "model-servers", strconv.Itoa(count), string(text))
}

// runModelServers is `weir model-servers COUNT HOW ADDRESSES`: it runs COUNT simulated model servers, configured by the
// JSON in HOW, writes their addresses to a file, and ends at a signal.
func runModelServers(args []string, _, stderr io.Writer) int {
	count := 0
	if len(args) == 3 {
		count, _ = strconv.Atoi(args[0])
	}
	if count < 1 || count > 1000 {
		_, _ = fmt.Fprintln(stderr, "weir model-servers: want a count from 1 to 1000, how they serve and a file for addresses")
		return 2
	}
	var how modelServers
	if err := json.Unmarshal([]byte(args[1]), &how); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir model-servers: how they serve: %v\n", err)
		return 2
	}
	if err := serveModels(count, how.config(), args[2]); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir model-servers: %v\n", err)
		return 1
	}
	return 0
}

func serveModels(count int, config modelsim.Config, file string) error {
	var addresses []string
	for range count {
		config.Seed++ // otherwise all would give the same answers at the same pace
		config.Engine.Seed++
		server, err := modelsim.Start(config)
		if err != nil {
			return err
		}
		defer server.Close()
		addresses = append(addresses, server.Address())
	}
	if err := scene.WriteAddresses(file, addresses); err != nil {
		return err
	}
	return serveUntilSignal(nil, func() {})
}

// serveUntilSignal calls serve, if it is not nil, until SIGTERM or SIGINT, and then calls stop.
func serveUntilSignal(serve func() error, stop func()) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if serve == nil {
		<-signals
		stop()
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	select {
	case err := <-ended:
		return err
	case <-signals:
		stop()
		return <-ended
	}
}
