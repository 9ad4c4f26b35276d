// Package tracing makes OpenTelemetry spans of requests that have ended, and sends them by OTLP.
//
// A request has a span for its wait and one for the pick of its endpoint (span.go), which begin and end at times that its
// stream has taken. The spans are made when the stream has ended and its lease is settled, so that tracing costs a request no
// time, and the outcome is the final one.
//
//	stream ends ─► Tracer.Ended ─► sampler ─► queue, bounded ─► batch ─► exporter ─► collector
//	                                            │ full               │ failed
//	                                            └──────── dropped, counted
//
// The parent is the span that Envoy names in the metadata of the gRPC stream, else the one in the request's headers
// (extproc.Parent). Weir changes neither: Envoy's span for the model server is a child of Envoy's own.
//
// Read configures it by the variables that OpenTelemetry specifies (variables.go). Apart from the SDK's
// BatchSpanProcessor, the queue counts the spans that it drops, starts its goroutine in Run, and has ended when Run returns.
//
// The package does not know the queue of requests, stock or endpoints, and reads no clock for a request.
package tracing
