package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// runModelServers is `weir model-servers COUNT ADDRESSES`: so many simulated model servers that answer at once, in a
// process of their own, so that their processor time can be told from others'. It writes where they listen to the file,
// and ends at a signal.
func runModelServers(args []string, _, stderr io.Writer) int {
	count := 0
	if len(args) == 2 {
		count, _ = strconv.Atoi(args[0])
	}
	if count < 1 || count > 1000 {
		_, _ = fmt.Fprintln(stderr, "weir model-servers: want a count from 1 to 1000, and a file for addresses")
		return 2
	}
	if err := serveModels(count, args[1]); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir model-servers: %v\n", err)
		return 1
	}
	return 0
}

func serveModels(count int, file string) error {
	var addresses []string
	for range count {
		server, err := modelsim.Start(modelsim.Instant())
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

// serveUntilSignal serves, if there is anything to call, until SIGTERM or SIGINT, and then stops.
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
