package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// One of two engines can read images, and none makes embeddings. A chat with an image goes to the engine that can read
// it, however busy it is. A request for embeddings is refused at once with its tag, while all engines are full and
// others wait: it would never be served. Then an engine for embeddings comes, and serves the next one.
func TestRequestsGoWhereTheirNeedsAreMet(t *testing.T) {
	t.Parallel()
	fixed := modelsim.Fixed(2, 20*time.Millisecond)
	s := start(t, setup{models: []modelsim.Config{fixed, fixed}, config: "profile: recommended", file: true})
	file := func(capabilities ...string) string {
		text := "endpoints:\n"
		for i, c := range capabilities {
			text += fmt.Sprintf("- { address: %q, slots: 2, capabilities: [%s] }\n", s.models[i].Address(), c)
		}
		return text
	}
	s.epp.writeEndpoints(file("structured_output", "image, structured_output"))
	chat := func(content string) ask {
		return ask{body: fmt.Sprintf(`{"model":"tiny","max_tokens":4,"messages":[{"role":"user","content":%s}]}`, content)}
	}
	image := chat(`[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"https://a.test/b.png"}}]`)
	embeddings := ask{path: "/v1/embeddings", body: `{"model":"tiny","input":"a text"}`}
	expect.Eventually(t, "the capabilities are known", func() error {
		if a := s.send(embeddings); a.status != http.StatusBadRequest {
			return fmt.Errorf("status %d: %s", a.status, a.body)
		}
		return nil
	})
	before := s.models[0].Stats().Started
	for range 10 {
		wantServed(t, "a chat with an image", s.send(image))
	}
	if n := s.models[0].Stats().Started - before; n != 0 {
		t.Errorf("%d images went to the engine that cannot read them", n)
	}
	for range 4 {
		wantServed(t, "a chat", s.send(chat(`"hello"`)))
	}
	if n := s.models[0].Stats().Started - before; n == 0 {
		t.Error("the engine that cannot read images gets no chats")
	}

	answers := make(chan answer)
	for range 12 { // more than the number of places
		go func() { answers <- s.send(chat(`"hello"`)) }()
	}
	a := s.send(embeddings)
	if a.status != http.StatusBadRequest || a.reason() != "unsupported" || a.header.Get("x-should-retry") != "false" ||
		!strings.Contains(a.body, `"code":"modality_not_supported"`) || !strings.Contains(a.body, "supports embeddings") {
		t.Errorf("embeddings: %d, %v: %s", a.status, a.header, a.body)
	}
	for range 12 {
		wantServed(t, "a chat beside it", <-answers)
	}

	s.epp.writeEndpoints(file("structured_output", "image, embeddings"))
	expect.Eventually(t, "the engine for embeddings is known", func() error {
		if a := s.send(embeddings); a.status != http.StatusNotFound || a.reason() != "" { // the engine's answer: simulated ones make none
			return fmt.Errorf("status %d: %s", a.status, a.body)
		}
		return nil
	})
	wantServed(t, "a chat with tools", s.send(ask{body: `{"model":"tiny","messages":[{"role":"user","content":"a"}],"max_tokens":4,"tools":[{"type":"function"}]}`}))
	wantServed(t, "an image", s.send(image))
	a = s.send(ask{body: strings.Replace(image.body, `{"model"`, `{"response_format":{"type":"json_object"},"model"`, 1)})
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, "image and structured_output") {
		t.Errorf("an image and a form, which no single engine can do: %d, %s", a.status, a.body)
	}
}
