package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports has the ports that the program listens on.
type Ports struct {
	GRPC    int `json:"grpc"`
	Health  int `json:"health"`
	Metrics int `json:"metrics"`
	Debug   int `json:"debug"` // 0: there is none
}

// listeners has the four listeners of the program; debug is nil with DebugOff.
type listeners struct{ grpc, health, metrics, debug net.Listener }

// listen opens all listeners, or none.
func listen(o *Options) (l listeners, err error) {
	for _, at := range []struct {
		portFlag       string
		port           int
		hostFlag, host string
		listener       *net.Listener
	}{
		{"grpc-port", o.GRPCPort, "bind-address", o.BindAddress, &l.grpc},
		{"grpc-health-port", o.HealthPort, "bind-address", o.BindAddress, &l.health},
		{"metrics-port", o.MetricsPort, "bind-address", o.BindAddress, &l.metrics},
		{"debug-port", o.DebugPort, "debug-bind-address", o.DebugBindAddress, &l.debug},
	} {
		if at.port == DebugOff {
			continue
		}
		if *at.listener, err = net.Listen("tcp", net.JoinHostPort(at.host, strconv.Itoa(at.port))); err != nil {
			err = listenProblem(err, at.hostFlag, at.host, at.portFlag, at.port)
			return listeners{}, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// listenProblem names the flag of a listener that could not be opened: the address's if the error is about it,
// otherwise the port's.
func listenProblem(err error, hostFlag, host, portFlag string, port int) error {
	var name *net.DNSError
	var form *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--%s: %d: must be free: %w", portFlag, port, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("--%s: %d: must be a port that this user may open: %w", portFlag, port, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &name), errors.As(err, &form):
		return fmt.Errorf("--%s: %q: must be an address of this machine, without brackets or a port: %w", hostFlag, host, err)
	default:
		return fmt.Errorf("--%s: %d: %w", portFlag, port, err)
	}
}

// close closes the open listeners.
func (l listeners) close() error {
	var errs []error
	for _, listener := range []net.Listener{l.grpc, l.health, l.metrics, l.debug} {
		if listener != nil {
			if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (l listeners) ports() Ports {
	port := func(listener net.Listener) int {
		if listener == nil {
			return 0
		}
		return listener.Addr().(*net.TCPAddr).Port
	}
	return Ports{GRPC: port(l.grpc), Health: port(l.health), Metrics: port(l.metrics), Debug: port(l.debug)}
}

// writePorts writes the file atomically.
func writePorts(file string, ports Ports) error {
	text, err := json.Marshal(ports)
	if err != nil {
		return fmt.Errorf("--ports-file: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("--ports-file: %w", err)
	}
	_, err = temporary.Write(append(text, '\n'))
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("--ports-file: %w", err), os.Remove(temporary.Name()))
	}
	return nil
}
