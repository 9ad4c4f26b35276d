package modelsim

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// HTTP/1.1 and HTTP/2 without TLS work on one port of a real network, streamed or not.
func TestBothProtocols(t *testing.T) {
	for _, cfg := range []Config{Instant(), Fixed(2, 0)} {
		s, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(proto == "HTTP/1.1")
			transport.Protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for _, body := range []string{`{"messages":[]}`, `{"messages":[], "stream": true}`} {
				resp, err := client.Post(s.URL()+chatPath, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				data, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.Proto != proto || resp.StatusCode != http.StatusOK {
					t.Errorf("%s %s: answered with %s, status %d, error %v", proto, body, resp.Proto, resp.StatusCode, err)
				}
				if streamed := strings.HasSuffix(string(data), "data: [DONE]\n\n"); streamed != strings.Contains(body, "stream") {
					t.Errorf("%s %s: answered %s", proto, body, data)
				}
			}
		}
		if got := s.Stats(); got.Completed != 4 || got.InFlight != 0 {
			t.Errorf("%+v, want 4 completed", got)
		}
	}
}

// Over HTTP/2 a reset breaks the stream, not the connection.
func TestHTTP2Reset(t *testing.T) {
	s, err := Start(Fixed(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	s.Inject(1, Quirk{Reset: ResetMidAnswer})
	resp, err := client.Post(s.URL()+chatPath, "application/json", strings.NewReader(`{"messages":[],"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil || len(data) == 0 {
		t.Errorf("read %d bytes, error %v; want some and an error", len(data), err)
	}
}

func TestStartReportsErrors(t *testing.T) {
	s, err := Start(Instant())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	taken := Instant()
	taken.Address = s.Address()
	if second, err := Start(taken); err == nil {
		second.Close()
		t.Error("a taken address was no error")
	}
	bad := Instant()
	bad.Model, bad.BytesPerToken, bad.Engine.Slots, bad.Quirk.Status = "", 0, -1, 7
	_, err = Start(bad)
	for _, field := range []string{"Model", "BytesPerToken", "Slots", "Quirk.Status"} {
		if err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

// The instant server finds the key without parsing. A text that looks like the key does not count.
func TestAsksFor(t *testing.T) {
	for body, want := range map[string]bool{
		`{"stream":true}`:                 true,
		`{"stream" : true }`:              true,
		`{"stream":false}`:                false,
		`{"stream_options":{}}`:           false,
		`{"x":"stream","y":true}`:         false,
		`{"x":"\"stream\":true"}`:         false,
		`{"x":"a stream","stream":false}`: false,
		`{"x":"a stream","stream":true}`:  true,
		`stream`:                          false,
		`"stream`:                         false,
		`"stream"`:                        false,
		``:                                false,
	} {
		if got := asksFor([]byte(body), "stream"); got != want {
			t.Errorf("asksFor(%s) = %v, want %v", body, got, want)
		}
	}
}
