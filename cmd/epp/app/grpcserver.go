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

// A stopped or disconnected proxy holds leases until its streams end. After pingAfter without traffic it is pinged, and
// its streams end after another pingTimeout: 20 s in total, within the promised 30 s.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
)

// messageMargin is the size of a message besides its body: the headers in the first one, and the protocol's own fields.
const messageMargin = 1 << 20

// The gRPC health services.
const (
	serviceLiveness  = "liveness"            // the process runs
	serviceSynced    = "synced"              // its sources have been read, and it is not draining
	serviceReadiness = "readiness"           // synced, and requests should come here instead of another replica
	serviceWhole     = ""                    // the server as a whole: synced
	serviceGIE       = "inference-extension" // the probe of other endpoint pickers' charts: synced
)

// Services by condition. All but liveness are down while the process drains. The kubelet probes one of whenSynced: a
// replica that waits to lead is healthy, and a roll-out must not wait for its leadership. Envoy probes one of
// whenReady.
var (
	whenSynced = []string{serviceSynced, serviceWhole, serviceGIE}
	whenReady  = []string{serviceReadiness, extprocv3.ExternalProcessor_ServiceDesc.ServiceName}
)

// neededReceiveLimit returns the needed size of the longest accepted message, in bytes. It is far above
// limits.maxBodyBytes: to Envoy a message refused by gRPC is a failed processor, and if it fails open it sends the
// request on without queueing. A body over the limit must arrive to be rejected as too-large. Envoy's buffers bound the
// size of one message.
func neededReceiveLimit(limits config.Limits) int {
	return int(min(max(limits.MaxBodyBytes, limits.MaxBodyBytesTotal)+limits.MaxHeaderBytes+messageMargin, math.MaxInt32))
}

// receiveLimit returns the size of the longest accepted message, in bytes: the size that the configuration needs, or
// the flag's if larger.
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
		// Envoy may ping at any time, even without streams.
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

// newHealthServer returns the server of the health checks. All services but liveness are down until set.
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
