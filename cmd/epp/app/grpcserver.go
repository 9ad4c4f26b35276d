package app

import (
	"fmt"
	"math"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// A proxy that was stopped or cut off holds leases until its streams end. After pingAfter without any traffic it is
// pinged, and its streams end after another pingTimeout: 20 s in all, within the promised 30 s.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
)

// messageMargin is the size of a message besides its body: the headers in the first one, and the protocol's own fields.
const messageMargin = 1 << 20

// The gRPC health services.
const (
	serviceLiveness  = "liveness"            // the process runs
	serviceSynced    = "synced"              // its sources have been read, and it does not drain
	serviceReadiness = "readiness"           // and requests should come here, not to another replica
	serviceWhole     = ""                    // the server as a whole: synced
	serviceGIE       = "inference-extension" // what the charts of other endpoint pickers probe with: synced
)

// Services by what they tell. Those beyond liveness are down while the process drains. A probe of the kubelet asks one
// of whenSynced: a replica that waits to be the leader is sound, and a roll-out must not wait for it. Envoy asks one of
// whenReady.
var (
	whenSynced = []string{serviceSynced, serviceWhole, serviceGIE}
	whenReady  = []string{serviceReadiness, extprocv3.ExternalProcessor_ServiceDesc.ServiceName}
)

// neededReceiveLimit returns the size that the longest accepted message must be able to have, in bytes. It is far above
// limits.maxBodyBytes: a message that gRPC refuses is a failed processor to Envoy, which then, if it fails open, sends
// the request on without queueing. A body over the limit has to arrive to be answered with too-large. The buffers of
// Envoy bound the size of one message.
func neededReceiveLimit(limits config.Limits) int {
	return int(min(max(limits.MaxBodyBytes, limits.MaxBodyBytesTotal)+limits.MaxHeaderBytes+messageMargin, math.MaxInt32))
}

// receiveLimit returns the size of the longest accepted message, in bytes: the size that the configuration needs, or
// more if the flag asks for it.
func (o *Options) receiveLimit(limits config.Limits) (int, error) {
	needed := neededReceiveLimit(limits)
	if o.GRPCMaxRecvMsgSize == 0 {
		return needed, nil
	}
	if o.GRPCMaxRecvMsgSize < needed {
		return 0, fmt.Errorf("--grpc-max-recv-msg-size: %d: must be at least %d, which limits.maxBodyBytesTotal: %d needs",
			o.GRPCMaxRecvMsgSize, needed, limits.MaxBodyBytesTotal)
	}
	return o.GRPCMaxRecvMsgSize, nil
}

// newGRPCServer returns the server for Envoy, without services; secure is nil for plaintext. It accepts messages of up to
// receiveLimit bytes.
func newGRPCServer(receiveLimit int, secure credentials.TransportCredentials, streams *streamEnd) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		// Envoy may ping as often as it likes, also without streams.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(receiveLimit),
		grpc.MaxSendMsgSize(math.MaxInt32),
		// Each waiting request is a stream.
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.StreamInterceptor(streams.intercept),
		grpc.ForceServerCodecV2(codec.New()),
	}
	if secure != nil {
		options = append(options, grpc.Creds(secure))
	}
	return grpc.NewServer(options...)
}

// newHealthServer returns the server of the health checks. Everything but liveness is down until it is set.
func newHealthServer() (*grpc.Server, *health.Server) {
	state := health.NewServer()
	state.SetServingStatus(serviceLiveness, healthv1.HealthCheckResponse_SERVING)
	setServing(state, whenSynced, false)
	setServing(state, whenReady, false)
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, state)
	return server, state
}

// setServing sets the status of services.
func setServing(state *health.Server, services []string, serving bool) {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthv1.HealthCheckResponse_SERVING
	}
	for _, service := range services {
		state.SetServingStatus(service, status)
	}
}
