package app

import (
	"math"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/weir-epp/weir/internal/config"
)

// A proxy that was stopped or cut off holds leases until its streams end. After pingAfter without any traffic it is
// pinged, and its streams end after another pingTimeout: 20 s in all, within the promised 30 s.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
)

// messageMargin is what a message has besides its body: the headers in the first one, and the protocol's own fields.
const messageMargin = 1 << 20

// The gRPC health services. Those beyond liveness are down while the process drains.
const (
	serviceLiveness  = "liveness"
	serviceReadiness = "readiness"
	serviceWhole     = ""
)

// readiness lists the services that tell whether requests should come here.
var readiness = []string{serviceWhole, serviceReadiness, extprocv3.ExternalProcessor_ServiceDesc.ServiceName}

// receiveLimit returns the size of the longest accepted message, in bytes. It is far above limits.maxBodyBytes: a
// message that gRPC refuses is a failed processor to Envoy, which then, if it fails open, sends the request on without
// queueing. A body over the limit has to arrive to be answered with too-large. The buffers of Envoy bound the size of
// one message.
func receiveLimit(limits config.Limits) int {
	return int(min(max(limits.MaxBodyBytes, limits.MaxBodyBytesTotal)+limits.MaxHeaderBytes+messageMargin, math.MaxInt32))
}

// newGRPCServer returns the server for Envoy, without services. It accepts messages of up to receiveLimit bytes.
func newGRPCServer(receiveLimit int, cert *certificate, streams *streamEnd, log logr.Logger) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		// Envoy may ping as often as it likes, also without streams.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(receiveLimit),
		grpc.MaxSendMsgSize(math.MaxInt32),
		// Each waiting request is a stream.
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.StreamInterceptor(streams.intercept),
	}
	if cert != nil {
		options = append(options, grpc.Creds(newNoticing(credentials.NewTLS(cert.config()), log)))
	}
	return grpc.NewServer(options...)
}

// newHealthServer returns the server of the health checks. Everything but liveness is down until it is set.
func newHealthServer() (*grpc.Server, *health.Server) {
	state := health.NewServer()
	state.SetServingStatus(serviceLiveness, healthv1.HealthCheckResponse_SERVING)
	setReady(state, false)
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, state)
	return server, state
}

// setReady sets whether requests should come here.
func setReady(state *health.Server, ready bool) {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = healthv1.HealthCheckResponse_SERVING
	}
	for _, service := range readiness {
		state.SetServingStatus(service, status)
	}
}
