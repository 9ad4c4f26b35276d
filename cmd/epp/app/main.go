package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/version"
)

// Main runs the program with its arguments and returns the exit code: 0 for a regular end, 1 for a failure or an
// invalid configuration, 2 for arguments that cannot be parsed.
func Main(args []string, stdout, stderr io.Writer) int {
	f := newFlags()
	err := f.parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		f.help(stdout)
		return 0
	case f.version:
		_, _ = fmt.Fprintln(stdout, "epp", version.Info())
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "epp: invalid arguments:\n%v\n(epp --help lists the flags)\n", err)
		return 2
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // at once, since SIGHUP ends the process by default
	defer signal.Stop(hangups)
	log, flush := newLogger(stderr, f.encoder, f.verbosity)
	defer flush()
	f.Log = log
	f.warnForeign(log)
	f.warnTracing()
	if f.validate {
		return validate(&f.Options, stdout, stderr)
	}
	a, err := New(f.Options)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "epp: %v\n", err)
		return 1
	}
	tuneMemory(a.Config())
	ctx, stop := onSignal(os.Exit)
	defer stop()
	defer onHangup(hangups, a.Reload)()
	if err := a.Run(ctx); err != nil {
		log.Error(err, "ended")
		return 1
	}
	return 0
}

// validate reports the problems of the configuration and the endpoints of valid options, and returns the exit code. It
// opens nothing but these files.
func validate(o *Options, stdout, stderr io.Writer) int {
	d, _, invalid, err := loadConfig(o, o.Log)
	listed := o.datastore()
	endpoints, unlisted := listed.Listed()
	if unlisted != nil {
		unlisted = fmt.Errorf("--endpoints-file: %w", unlisted) // Validate has seen --endpoints
	}
	if err := errors.Join(cmp.Or(err, invalid), unlisted); err != nil {
		_, _ = fmt.Fprintf(stderr, "epp: %v\n", err)
		return 1
	}
	advise(&d, endpoints, o.HashFlowKeys, o.Log)
	for _, w := range d.ReservationWarnings(endpoints) {
		o.Log.Info("WARNING: configuration: " + w.Error())
	}
	_, _ = fmt.Fprintf(stdout, "valid (profile %s)\n", d.Profile)
	return 0
}

// onSignal returns a context that the first SIGTERM or SIGINT cancels; the second one exits at once.
func onSignal(exit func(code int)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		select {
		case <-signals:
			exit(1)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// onHangup calls a function for every signal until stop is called.
func onHangup(signals <-chan os.Signal, reload func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				reload()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
