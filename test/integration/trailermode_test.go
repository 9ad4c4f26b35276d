package integration

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Clients that disconnect as soon as an answer begins do not cause the warning of an Envoy without
// response_trailer_mode: SEND. Without that mode the warning comes, whatever clients do.
func TestClientsThatLeaveAreNoWrongMode(t *testing.T) {
	t.Parallel()
	for trailers, want := range map[string]bool{"SEND": false, "SKIP": true} {
		t.Run(trailers, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{
				envoys: []string{"header-only"}, models: []modelsim.Config{modelsim.Fixed(8, 300*time.Millisecond)},
				edit: func(b envoyrun.Bootstrap) error {
					envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "processing_mode")["response_trailer_mode"] = trailers
					return nil
				},
			})
			warnings := func() int { return strings.Count(s.epp.Log.String(), "response_trailer_mode") }
			for range 40 {
				s.leaveAtTheHeaders()
			}
			// On a busy machine a stream may end so late that it seems to have lived on. The warning then takes more
			// streams, and comes again after such a stream.
			for deadline := time.Now().Add(patience); want && warnings() == 0 && time.Now().Before(deadline); {
				s.leaveAtTheHeaders()
			}
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
			if n := warnings(); (n > 0) != want {
				t.Errorf("%d warnings, want some: %v", n, want)
			}
		})
	}
}

// leaveAtTheHeaders requests a streamed answer, and resets the connection once its headers are there.
func (s *scene) leaveAtTheHeaders() {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.envoy().Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	body := chat("tiny", true)
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		s.t.Fatal(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != 200 { //nolint:bodyclose // the connection is reset
		s.t.Fatalf("%v, %v", response, err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
}
