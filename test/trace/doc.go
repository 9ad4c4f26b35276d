// Package trace tests tracing on the wire: a real Envoy with its own OpenTelemetry tracer, the real epp, and the OTLP
// receiver of the OpenTelemetry collector (hack/tools/otlpcollector), which gets both programs' spans.
package trace
