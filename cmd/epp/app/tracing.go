package app

import (
	"github.com/weir-epp/weir/internal/version"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/tracing"
)

// readTracing makes the option of --tracing from the environment. The error names each invalid variable.
func (f *flags) readTracing(lookup func(string) string) (err error) {
	if f.tracing {
		f.Tracing, err = tracing.Read(lookup)
	}
	return err
}

// warnTracing warns that there are no spans although --tracing is given.
func (f *flags) warnTracing() {
	if f.tracing && f.Tracing == nil {
		f.Log.Info("--tracing has no effect, because OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER turns traces off")
	}
}

// trace makes the tracer, if configured.
func (a *App) trace() error {
	if a.options.Tracing == nil {
		return nil
	}
	cfg := *a.options.Tracing
	cfg.Version = version.Info().Version
	a.tracer = tracing.New(cfg, tracing.NewExporter(&cfg), a.log.WithName("tracing"))
	return register(a.registry, a.tracer.Collectors()...)
}

// spans returns the tracer for streams; nil if there is none.
func (a *App) spans() extproc.Tracer {
	if a.tracer == nil {
		return nil
	}
	return a.tracer
}
