package envoyfacts

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// weirNamespace is the metadata namespace in which a processor reports its decision.
const weirNamespace = "weir"

// withDecision adds a whole namespace of dynamic metadata to an answer.
func withDecision(answer *extproc.ProcessingResponse, fields map[string]any) *extproc.ProcessingResponse {
	decision, err := structpb.NewStruct(map[string]any{weirNamespace: fields})
	if err != nil {
		panic(err)
	}
	answer.DynamicMetadata = decision
	return answer
}

// loggingDecisions configures a JSON access log with the processor's decision, and whether Envoy accepts the
// processor's metadata.
func loggingDecisions(accepted bool) func(envoyrun.Bootstrap) error {
	return func(b envoyrun.Bootstrap) error {
		log := envoyrun.Object(b.ConnectionManager(), "access_log", 0, "typed_config")
		if log == nil {
			return errors.New("no access log")
		}
		log["log_format"] = map[string]any{"json_format": map[string]any{
			"status": "%RESPONSE_CODE%", "details": "%RESPONSE_CODE_DETAILS%",
			"flow": "%DYNAMIC_METADATA(weir:flow)%", "wait_ms": "%DYNAMIC_METADATA(weir:wait_ms)%",
			"outcome": "%DYNAMIC_METADATA(weir:outcome)%", "bypass": "%DYNAMIC_METADATA(weir:bypass)%",
			"endpoint": "%DYNAMIC_METADATA(weir:endpoint)%",
		}}
		namespaces := []any{"envoy.lb"}
		if accepted {
			namespaces = append(namespaces, weirNamespace)
		}
		options := envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "metadata_options")
		options["receiving_namespaces"] = map[string]any{"untyped": namespaces}
		return nil
	}
}

// wantLogged waits for the only line of the access log and compares the given fields. nil means null.
func (e *proxy) wantLogged(t *testing.T, want map[string]any) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		lines, err := e.AccessLog()
		if err == nil && len(lines) > 0 {
			var got map[string]any
			if len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &got) != nil {
				t.Fatalf("the access log is\n%s", strings.Join(lines, "\n"))
			}
			for key, value := range want {
				if got[key] != value {
					t.Errorf("%s is %#v, want %#v in %s", key, got[key], value, lines[0])
				}
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing in the access log", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Dynamic metadata in any answer appears in the access log, even in an ImmediateResponse, whether the request was held
// or not. Numbers and booleans keep their types, and no value breaks the line.
func TestDecisionsInTheAccessLog(t *testing.T) {
	hostile := "a \"b\"\n{\"outcome\":\"forged\"}\t\\"
	decision := map[string]any{"flow": hostile, "wait_ms": 1500, "outcome": "ttl-expired", "bypass": false, "endpoint": ""}
	logged := map[string]any{
		"flow": hostile, "wait_ms": 1500.0, "outcome": "ttl-expired", "bypass": false, "status": 503.0, "details": "ttl-expired",
	}
	for _, config := range []string{"recommended", "header-only", "full-duplex"} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			address := modelServer(t, answering("a"))
			envoy := start(t, config, p, loggingDecisions(true), address)
			x := envoy.post(t, "{}")
			s := p.accept(t)
			s.want("request_headers")
			if config != "full-duplex" {
				s.send(overrideTimeout(time.Minute))
			}
			s.send(withDecision(rejection("ttl-expired"), decision))
			x.wantRejection("ttl-expired")
			envoy.wantLogged(t, logged)
		})
	}
	t.Run("not accepted", func(t *testing.T) {
		p := newProcessor(t)
		envoy := start(t, "recommended", p, loggingDecisions(false), modelServer(t, answering("a")))
		x := envoy.post(t, "{}")
		s := p.accept(t)
		s.want("request_headers")
		s.send(withDecision(rejection("ttl-expired"), decision))
		x.wantRejection("ttl-expired")
		envoy.wantLogged(t, map[string]any{"flow": nil, "wait_ms": nil, "outcome": nil, "bypass": nil})
	})
}

// Metadata from several answers to one request is merged field by field; the last value wins. So a preemption sends
// only what it changes.
func TestDecisionsAreMerged(t *testing.T) {
	p := newProcessor(t)
	address, arrived, _ := hanging(t)
	envoy := start(t, "recommended", p, loggingDecisions(true), address)
	x := envoy.post(t, "{}")
	s := p.accept(t)
	s.want("request_headers")
	s.send(withDecision(withoutBody(requestHeaders(destinationHeader, address)),
		map[string]any{"flow": "alice", "wait_ms": 20, "outcome": "dispatched", "bypass": true, "endpoint": address}))
	receive(t, "the request", arrived)
	s.send(withDecision(rejection("preempted"), map[string]any{"outcome": "preempted"}))
	x.wantRejection("preempted")
	envoy.wantLogged(t, map[string]any{
		"flow": "alice", "wait_ms": 20.0, "outcome": "preempted", "bypass": true, "endpoint": address, "status": float64(http.StatusServiceUnavailable),
	})
}
