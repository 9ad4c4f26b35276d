package scene

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// eppGrace is the time for epp to stop; it drains for at most that long.
const eppGrace = 2 * time.Second

// FindEPP returns the epp binary: the given path, or else the one beside this program. The error has the command to
// build one.
func FindEPP(path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("scene: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "epp")
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("scene: no epp (`make build` builds it beside weir; --epp names another): %w", err)
	}
	return filepath.Abs(path)
}

// EPPOptions describe the epp to start.
type EPPOptions struct {
	// Name is the name of its process and of its files, required if a scene has several epps; empty means epp.
	Name string
	// Binary is its path, from FindEPP.
	Binary string
	// Config is its configuration in YAML, without apiVersion and kind; empty is the defaults.
	Config string
	// Endpoints are the model servers, ip:port each; none if a flag names a file of them.
	Endpoints []string
	// Flags are further flags.
	Flags []string
	// Host is the address that it listens at; empty means 127.0.0.1.
	Host string
	// Environment has variables, NAME=value, beside those of this process.
	Environment []string
	// Shipped leaves the drain and the probing as they are by default. Otherwise epp probes no model server, and ends when
	// nothing runs, after 2 s at most.
	Shipped bool
}

// EPP is a running epp.
type EPP struct {
	*Process
	// Address is its ext_proc address without TLS and Health the address of its gRPC health service, ip:port each;
	// MetricsURL is the root of its metrics, DebugURL the root of its status and debug pages.
	Address, Health, MetricsURL, DebugURL string
}

// EPP starts an epp and returns when it listens.
func (s *Scene) EPP(options EPPOptions) (*EPP, error) {
	name := cmp.Or(options.Name, "epp")
	host := cmp.Or(options.Host, "127.0.0.1")
	ports := filepath.Join(s.dir, name+"-ports.json")
	flags := []string{
		"--bind-address=" + host, "--debug-bind-address=" + host,
		"--grpc-port=0", "--grpc-health-port=0", "--metrics-port=0", "--debug-port=0",
		"--ports-file=" + ports, "--secure-serving=false",
	}
	if options.Config != "" {
		config := filepath.Join(s.dir, name+".yaml")
		text := "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n" + options.Config
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("scene: %w", err)
		}
		flags = append(flags, "--config-file="+config)
	}
	if !options.Shipped {
		flags = append(flags, "--drain-timeout="+eppGrace.String(), "--min-drain=0s", "--probe-path=")
	}
	if len(options.Endpoints) > 0 {
		flags = append(flags, "--endpoints="+strings.Join(options.Endpoints, ","))
	}
	cmd := exec.CommandContext(s.ctx, options.Binary, append(flags, options.Flags...)...)
	cmd.Env = append(os.Environ(), options.Environment...)
	process, err := s.start(name, cmd)
	if err != nil {
		return nil, err
	}
	var at struct{ GRPC, Health, Metrics, Debug int }
	if err := s.await(process, ports, &at); err != nil {
		return nil, err
	}
	if at.GRPC == 0 || at.Metrics == 0 || at.Debug == 0 {
		return nil, fmt.Errorf("scene: %s did not say where it listens", name)
	}
	return &EPP{
		Process:    process,
		Address:    fmt.Sprintf("%s:%d", host, at.GRPC),
		Health:     fmt.Sprintf("%s:%d", host, at.Health),
		MetricsURL: fmt.Sprintf("http://%s:%d", host, at.Metrics),
		DebugURL:   fmt.Sprintf("http://%s:%d", host, at.Debug),
	}, nil
}
