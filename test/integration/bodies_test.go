package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// collects starts a scene without the buffer filter, in which Weir collects bodies.
func collects(t *testing.T, envoy, config string) *scene {
	t.Helper()
	return start(t, setup{
		envoys: []string{envoy}, models: []modelsim.Config{modelsim.Instant()}, config: config,
		edit: envoyrun.WithoutFilter(envoyrun.BufferFilter),
	})
}

// upload is a request on its own connection, whose body the test sends step by step.
type upload struct {
	net.Conn
	t *testing.T
}

// upload announces a body of the given size.
func (s *scene) upload(tenant string, announced int) *upload {
	s.t.Helper()
	conn := s.write(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nhost: inference\r\nx-llm-d-inference-fairness-id: %s\r\n"+
		"content-type: application/json\r\ncontent-length: %d\r\n\r\n", tenant, announced))
	return &upload{conn, s.t}
}

func (u *upload) part(text string) {
	u.t.Helper()
	_ = u.SetWriteDeadline(time.Now().Add(patience))
	if _, err := u.Write([]byte(text)); err != nil {
		u.t.Fatal(err)
	}
}

// wants reads the answer.
func (u *upload) wants(status int, reason, retry string) {
	u.t.Helper()
	_ = u.SetReadDeadline(time.Now().Add(patience))
	response, err := http.ReadResponse(bufio.NewReader(u), nil)
	if err != nil {
		u.t.Errorf("no answer: %v", err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != status || response.Header.Get("x-weir-reason") != reason || response.Header.Get("x-should-retry") != retry {
		u.t.Errorf("got %d %v, want %d %s", response.StatusCode, response.Header, status, reason)
	}
}

// A client that stops sending gets 408, which its SDK must not retry, and holds nothing, for a large or a small
// announced length. A slow but steady client is served, long after the first one's time was over.
func TestBodiesThatStop(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"full-duplex", "recommended"} {
		t.Run(envoy, func(t *testing.T) {
			t.Parallel()
			s := collects(t, envoy, "limits: { bodyTimeout: 4s }\n")
			for _, begun := range []string{"", `{"mo`} {
				u := s.upload("x", 100)
				u.part(begun)
				u.wants(408, "body-timeout", "false")
			}
			s.epp.waitFor(2, "weir_requests_total", "outcome", "body-timeout")
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_body_bytes")

			const parts = 8
			u := s.upload("x", parts<<16)
			u.part(`{"model":"tiny","messages":[{"role":"user","content":"`)
			sent := 54
			for range parts - 1 {
				time.Sleep(900 * time.Millisecond)
				u.part(strings.Repeat("x", 1<<16))
				sent += 1 << 16
			}
			u.part(strings.Repeat("x", parts<<16-sent-4) + `"}]}`)
			u.wants(200, "", "")
			wantServed(t, "a whole request", s.send(ask{}))
			s.epp.settled()
		})
	}
}

// A client that hoards incomplete bodies loses the newest of them to another client's body, and no other client loses
// any.
func TestHoardedBodies(t *testing.T) {
	t.Parallel()
	const part = 64 << 10
	s := collects(t, "full-duplex", `
flows: { key: ["header:x-llm-d-inference-fairness-id", "model"] }
limits: { maxBodyBytes: 262144, maxBodyBytesTotal: 524288 }
`)
	var hoarded []*upload
	for i := range 7 {
		hoarded = append(hoarded, s.upload("hoarder", part+1000))
		hoarded[i].part(strings.Repeat(" ", part))
		expect.True(t, "Weir has it", func() bool { return s.epp.value("weir_extproc_body_bytes") >= float64((i+1)*part) })
	}
	quiet := ask{tenant: "quiet", body: chat("tiny", false) + strings.Repeat(" ", 2*part)}
	wantServed(t, "a quiet tenant's request", s.send(quiet))
	hoarded[6].wants(503, "no-memory", "")
	if n := s.epp.outcomes()["no-memory"]; n > 2 {
		t.Errorf("%d lost their bodies, and two would do", n)
	}
	for _, u := range hoarded {
		_ = u.Close()
	}
	s.epp.settled()
	s.epp.waitFor(0, "weir_extproc_body_bytes")
}

// A form's model determines its flow and its target, and is rewritten in place, in every mode that shows bodies.
func TestFormsHaveAModel(t *testing.T) {
	t.Parallel()
	const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" +
		"RI\x00\xffFF\r\n--\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\ncheap\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nchat\r\n--b--\r\n"
	for _, envoy := range []string{"recommended", "full-duplex", "buffered-partial"} {
		t.Run(envoy, func(t *testing.T) {
			t.Parallel()
			bodies := make(chan string, 2)
			engine := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies <- string(body)
			})
			s := before(t, engine, setup{
				envoys: []string{envoy}, config: "models: [ { name: chat, targets: [ { name: large, weight: 1 } ] } ]\n",
			})
			post := func(body string) answer {
				return s.send(ask{
					path: "/v1/audio/transcriptions", header: []string{"content-type", "multipart/form-data; boundary=b"}, body: body,
				})
			}
			if got := post(form); got.status != 200 {
				t.Fatalf("got %d %v %s", got.status, got.err, got.body)
			}
			if got, want := <-bodies, strings.Replace(form, "\r\nchat\r\n", "\r\nlarge\r\n", 1); got != want {
				t.Errorf("the engine got %q, want %q", got, want)
			}
			if got := post(strings.TrimSuffix(form, "--\r\n")); got.status != 400 || got.reason() != "bad-request" {
				t.Errorf("a form that is not closed: %d %s", got.status, got.body)
			}
			if got := s.send(ask{header: []string{"content-type", "text/plain"}, body: chat("chat", false)}); got.status != 200 {
				t.Errorf("JSON as text/plain: %d %s", got.status, got.body)
			}
			if got, want := <-bodies, chat("large", false); got != want {
				t.Errorf("the engine got %q, want %q", got, want)
			}
		})
	}
}
