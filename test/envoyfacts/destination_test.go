package envoyfacts

import (
	"io"
	"net/http"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// served returns the endpoint that served the response, from the metadata of the response headers.
func served(message *extproc.ProcessingRequest) string {
	lb := message.GetMetadataContext().GetFilterMetadata()["envoy.lb"]
	return lb.GetFields()["x-gateway-destination-endpoint-served"].GetStringValue()
}

// "override_host load balancing policy, sources header and/or metadata: works; an ordered list is walked on retries; an
// address that is not in the cluster falls back to the fallback policy." "…-served metadata arrives with the response
// headers if envoy.lb is forwarded." "Dynamic metadata envoy.lb counts with receiving_namespaces."
func TestDestination(t *testing.T) {
	a, b := modelServer(t, answering("a")), modelServer(t, answering("b"))
	dead, foreign := unused(t), modelServer(t, answering("foreign"))
	p := newProcessor(t)
	envoy := start(t, "recommended", p, nil, a, b, dead)

	for _, test := range []struct {
		name   string
		answer *extproc.ProcessingResponse
		want   string // the body; empty: of any server in the cluster
		served string
	}{
		{"header", requestHeaders(destinationHeader, a), "a", a},
		{"another", requestHeaders(destinationHeader, b), "b", b},
		{"metadata", withMetadata(requestHeaders(), "envoy.lb", destinationHeader, b), "b", b},
		{"header wins", withMetadata(requestHeaders(destinationHeader, a), "envoy.lb", destinationHeader, b), "a", a},
		{"list", requestHeaders(destinationHeader, dead+","+b), "b", b},
		{"foreign address", requestHeaders(destinationHeader, foreign), "", ""},
		{"none", requestHeaders(), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 4 { // the fallback would sometimes choose the right one
				x := envoy.post(t, "")
				s := p.accept(t)
				s.want("request_headers")
				s.send(test.answer)
				message := s.want("response_headers")
				s.send(responseHeaders())
				resp := x.headers()
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != http.StatusOK || string(body) == "foreign" ||
					test.want != "" && string(body) != test.want {
					t.Errorf("answer is %d %q, %v; want %q", resp.StatusCode, body, err, test.want)
				}
				if got := served(message); test.served != "" && got != test.served {
					t.Errorf("served by %q, want %q", got, test.served)
				}
				s.wantEnded()
			}
		})
	}
}

// Envoy merges the parts of an answer that is the concatenation of two, by Protobuf's rule: headers of both are set,
// and namespaces of both are in the metadata. Weir's codec relies on it.
func TestConcatenatedAnswersMerge(t *testing.T) {
	a := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("x-shared")+r.Header.Get("x-own")+r.Header.Get("x-removed"))
	})
	p := newProcessor(t)
	envoy := start(t, "gate", p, nil, a)
	shared := withMetadata(withoutBody(requestHeaders("x-shared", "1", destinationHeader, a)), "envoy.lb", destinationHeader, a)
	own := requestHeaders("x-own", "2")
	own.GetRequestHeaders().Response.HeaderMutation.RemoveHeaders = []string{"x-removed"}

	x := envoy.post(t, "{}", "x-removed", "4")
	main := p.accept(t)
	main.want("request_headers")
	var metadata codec.Metadata
	metadata.String("id", "r-17")
	main.send(codec.WithMetadata(codec.Merged(codec.Encoded(shared), own), "weir", &metadata))
	gate := p.accept(t)
	if id := gateID(gate.want("response_headers")); id != "r-17" {
		t.Errorf("the ID in the metadata is %q", id)
	}
	gate.want("response_body")
	gate.openGate()
	if at := served(main.want("response_headers")); at != a {
		t.Errorf("served by %q, want %q", at, a)
	}
	main.send(responseHeaders())
	resp := x.headers()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "12" {
		t.Errorf("the model server was sent %q, %v", body, err)
	}
	main.wantEnded()
}

// "A configuration must remove the header before the filter": with every shipped file, a client's own destination has
// no effect, even if the processor is dead and requests go on without it. Without the removal it has an effect, so the
// removal is necessary.
func TestForgedDestination(t *testing.T) {
	a, b := modelServer(t, answering("a")), modelServer(t, answering("b"))
	chosen := func(t *testing.T, config string, edit func(envoyrun.Bootstrap) error) (chosen int) {
		p := newProcessor(t)
		envoy := start(t, config, p, edit, a, b)
		p.die()
		const tries = 24
		for range tries {
			resp := envoy.post(t, "", destinationHeader, b).headers()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%d, %v", resp.StatusCode, err)
			}
			if string(body) == "b" {
				chosen++
			}
		}
		return chosen * 100 / tries
	}
	for _, config := range []string{"recommended", "header-only", "buffered-partial", "streamed", "full-duplex", "gate"} {
		t.Run(config, func(t *testing.T) {
			// Two servers take turns, so all 24 requests at one of them happen by chance only once in millions.
			if percent := chosen(t, config, nil); percent == 100 {
				t.Error("the forged destination was honoured")
			}
		})
	}
	t.Run("without the removal", func(t *testing.T) {
		if percent := chosen(t, "recommended", envoyrun.KeepHeader(destinationHeader)); percent != 100 {
			t.Errorf("the forged destination was honoured in %d %% only: the tests above prove nothing", percent)
		}
	})
}

// "Killed, fail-open: running responses finish untouched; held ones go to the fallback policy. Killed, fail-closed: held
// requests get 503 (status_on_error), and running responses are cut, since their streams are open."
func TestProcessorDies(t *testing.T) {
	for _, config := range []string{"recommended", "fail-closed"} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			running, pieces, _ := sse(t)
			envoy := start(t, config, p, nil, running)

			x := envoy.post(t, `{}`)
			s := dispatch(t, p, config, running)
			s.want("response_headers")
			s.send(responseHeaders())
			pieces <- "begun"
			body := x.headers().Body
			wantRead(t, body, "begun")
			held := envoy.post(t, `{}`)
			p.accept(t).want("request_headers")

			p.die()
			if config == "fail-closed" {
				if rest, err := io.ReadAll(body); err == nil {
					t.Errorf("the running answer ended orderly with %q", rest)
				}
				held.wantError(http.StatusServiceUnavailable, "unavailable")
				return
			}
			if resp := held.headers(); resp.StatusCode != http.StatusOK {
				t.Errorf("the held request's status is %d", resp.StatusCode)
			}
			held.hangUp()
			pieces <- ", goes on"
			wantRead(t, body, ", goes on")
		})
	}
}

// "… FULL_DUPLEX ones get 500 whatever the setting"; with status_on_error, 503.
func TestProcessorDiesHoldingAWholeBody(t *testing.T) {
	p := newProcessor(t)
	envoy := start(t, "full-duplex", p, nil, modelServer(t, answering("")))

	x := envoy.post(t, `{}`)
	s := p.accept(t)
	s.want("request_headers")
	s.want("request_body")
	p.die()
	x.wantError(http.StatusServiceUnavailable, "unavailable")
}
