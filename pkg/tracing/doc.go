// Package tracing makes OpenTelemetry spans of requests that have ended, and sends them by OTLP.
//
// A request has one span for its wait and one for the pick of its endpoint (span.go), with times taken by its stream.
// The spans are made after the stream has ended and its lease is settled, so tracing delays no request, and the outcome
// is final.
//
//	stream ends ─► Tracer.Ended ─► sampler ─► queue, bounded ─► batch ─► exporter ─► collector
//	                                            │ full               │ failed
//	                                            └──────── dropped, counted
//
// The parent is the span that Envoy names in the metadata of the gRPC stream, else the one in the request's headers
// (extproc.Parent). Weir changes neither: Envoy's span for the model server is a child of Envoy's own.
//
// Read takes the configuration from OpenTelemetry's environment variables (variables.go). Unlike the SDK's
// BatchSpanProcessor, the queue counts dropped spans, starts its goroutine in Run, and has ended when Run returns.
//
// The package does not know the queue of requests, stock or endpoints, and reads no clock for a request.
package tracing
