package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/eds"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/scheduling"
)

const envoyUsage = `Usage:
  weir envoy endpoints [flags] IN OUT

The command converts IN, epp's --endpoints-file, to OUT, a file from which Envoy reads the endpoints of a cluster (EDS, as
in config/envoy). It leaves out engines with the roles prefill and encode, which get no requests from Weir. It replaces OUT
in one step, by a rename in its directory; an invalid IN leaves OUT unchanged. With --follow it runs until SIGTERM or ^C: it
writes OUT after each change of IN, and at SIGHUP it reads IN and writes OUT again.

With --follow, an endpoint that was removed from IN stays in OUT as DRAINING for the time of --grace, for requests that Weir
has already granted. Without --follow it disappears at once.

Exit code: 0 written, or ended by a signal; 1 IN is invalid or OUT cannot be written at first; 2 the arguments are wrong.

Flags:
`

// envoyQuiet is the time without changes before IN is read: less than epp's, so that Envoy knows an endpoint first.
const envoyQuiet = datastore.QuietTime / 5

// maxGrace is the longest time of --grace.
const maxGrace = time.Hour

// envoyFlags are the flags of `weir envoy endpoints`.
type envoyFlags struct {
	in, out string
	cluster string
	follow  bool
	grace   time.Duration
}

// runEnvoy is `weir envoy`.
func runEnvoy(args []string, stdout, stderr io.Writer) int {
	f := &envoyFlags{}
	set := flagSet("weir envoy endpoints")
	set.BoolVar(&f.follow, "follow", false, "write OUT after each change of IN, until a signal")
	set.DurationVar(&f.grace, "grace", 10*time.Second, "time for which a removed endpoint drains, from 0s to 1h, with --follow")
	set.StringVar(&f.cluster, "cluster", "model_servers", "`name` of the cluster, or its eds_cluster_config.service_name")
	usage := envoyUsage + set.FlagUsagesWrapped(120)
	switch {
	case len(args) == 0:
		return misused(stderr, "weir envoy", errors.New("must be followed by endpoints"))
	case !slices.Contains([]string{"endpoints", "-h", "--help"}, args[0]):
		return misused(stderr, "weir envoy", fmt.Errorf("%q: must be endpoints", args[0]))
	case args[0] == "endpoints":
		args = args[1:]
	}
	if code, ok := readArguments(set, usage, args, f.check, stdout, stderr); !ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx, stdout, stderr); err != nil {
		complain(stderr, err)
		return 1
	}
	return 0
}

// check returns the problem of the arguments, or nil.
func (f *envoyFlags) check(args []string) error {
	switch {
	case len(args) < 2:
		return errors.New("must be followed by the files IN and OUT")
	case len(args) > 2:
		return fmt.Errorf("%q: only the files IN and OUT are allowed", args[2])
	}
	f.in, f.out = args[0], args[1]
	switch {
	case !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(f.out))):
		return fmt.Errorf("OUT: %q: must end in .yaml, .yml or .json, which tells Envoy the format", f.out)
	case f.in == "-" && f.follow:
		return errors.New("IN: standard input cannot be followed")
	case same(f.in, f.out):
		return fmt.Errorf("OUT: %q: is IN", f.out)
	case f.grace < 0 || f.grace > maxGrace:
		return fmt.Errorf("--grace: %v: must be from 0s to 1h", f.grace)
	case f.cluster == "":
		return errors.New("--cluster: is empty")
	}
	return nil
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// run writes the file once, or with follow after each change until ctx is done.
func (f *envoyFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	endpoints, err := readEndpoints(f.in)
	if err != nil {
		return err
	}
	first := addressesOf(endpoints)
	if !f.follow {
		hosts := make([]eds.Host, len(first))
		for i, address := range first {
			hosts[i].Address = address
		}
		err := eds.Write(f.out, eds.Encode(f.cluster, hosts))
		if err == nil {
			f.told(stdout, hosts)
		}
		return err
	}
	follower := eds.Follower{Path: f.out, Cluster: f.cluster, Grace: f.grace, Wrote: func(hosts []eds.Host, err error) {
		if err != nil {
			complain(stderr, err)
			return
		}
		f.told(stdout, hosts)
	}}
	return f.watch(ctx, stderr, first, follower)
}

// watch passes each valid content of IN on to the follower, until ctx is done or the first write fails.
func (f *envoyFlags) watch(ctx context.Context, stderr io.Writer, first []netip.AddrPort, follower eds.Follower) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists, again := make(chan []netip.AddrPort), make(chan struct{})
	files := datastore.NewFiles(logr.New(spoken{stderr}))
	files.Quiet = envoyQuiet
	err := files.Follow(f.in, func(content []byte, err error) {
		var endpoints []scheduling.Endpoint
		if err == nil {
			if endpoints, err = datastore.DecodeEndpoints(content); err != nil {
				err = fmt.Errorf("%s: %w", f.in, err)
			}
		}
		if err != nil {
			complain(stderr, fmt.Errorf("%w\n%s stays as it is", err, f.out))
			return
		}
		select {
		case lists <- addressesOf(endpoints):
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go func() {
		for {
			select {
			case <-hangups:
				files.Reread()
				select {
				case again <- struct{}{}:
				case <-ctx.Done():
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- follower.Run(ctx, first, lists, again)
	}()
	err = files.Run(ctx)
	return errors.Join(err, <-done)
}

// told prints the present content of OUT.
func (f *envoyFlags) told(stdout io.Writer, hosts []eds.Host) {
	draining := 0
	for _, h := range hosts {
		if h.Draining {
			draining++
		}
	}
	_, _ = fmt.Fprintf(stdout, "%s: endpoints: %d, draining: %d\n", printable.Text(f.out), len(hosts)-draining, draining)
}

// addressesOf returns the addresses, ip:port, of the endpoints that answer requests. Prefill and encode engines work
// for other engines, so Envoy must not choose them when Weir names no destination.
func addressesOf(endpoints []scheduling.Endpoint) []netip.AddrPort {
	all := make([]netip.AddrPort, 0, len(endpoints))
	for _, e := range endpoints {
		if e.Work.Serves() {
			all = append(all, netip.MustParseAddrPort(e.Address))
		}
	}
	return all
}

// spoken is a log that prints only messages and errors.
type spoken struct{ io.Writer }

func (s spoken) Init(logr.RuntimeInfo)                {}
func (s spoken) Enabled(level int) bool               { return level == 0 }
func (s spoken) Info(_ int, message string, _ ...any) { complain(s, errors.New(message)) }
func (s spoken) Error(err error, message string, _ ...any) {
	complain(s, fmt.Errorf("%s: %w", message, err))
}
func (s spoken) WithValues(...any) logr.LogSink { return s }
func (s spoken) WithName(string) logr.LogSink   { return s }

// complain prints an error of several lines, which may quote a stranger's file.
func complain(stderr io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintln(stderr, "weir envoy:", printable.Text(line))
	}
}
