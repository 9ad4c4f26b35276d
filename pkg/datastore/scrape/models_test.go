package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// The longest context of a list is that of its longest model; adapters state none of their own.
func TestLongestContext(t *testing.T) {
	for text, want := range map[string]int64{
		`{"object":"list","data":[{"id":"a","max_model_len":4096},{"id":"lora","max_model_len":null,"parent":"a"}]}`: 4096,
		`{"data":[{"id":"a","max_model_len":4096},{"id":"b","max_model_len":8192}]}`:                                 8192,
		`{"data":[{"id":"a"}]}`: 0, `{"data":[]}`: 0, `{}`: 0, `null`: 0,
	} {
		if got, err := listingOf([]byte(text)); got.Longest != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// The adapters of a list are the models with a parent.
func TestAdaptersOfLists(t *testing.T) {
	for text, want := range map[string]string{
		`{"data":[{"id":"a","parent":null},{"id":"x","parent":"a"},{"id":"w","parent":"a"},{"id":"x","parent":"a"},{"id":"","parent":"a"}]}`: "[w x]",
		`{"data":[{"id":"a"},{"id":"x","parent":""},{"id":"y","parent":7},{"id":"` + strings.Repeat("n", 257) + `","parent":"a"}]}`:          "[]",
	} {
		if got, err := listingOf([]byte(text)); fmt.Sprint(got.Adapters) != want || err != nil {
			t.Errorf("%s: %+v, %v, want %s", text, got, err, want)
		}
	}
}

// A list states what its models can do in one of several forms. An endpoint lacks what none of its models can do, and nothing
// that no model says.
func TestCapabilitiesOfLists(t *testing.T) {
	for text, want := range map[string]string{
		`{"data":[{"id":"a"}]}`: "", `{"data":[]}`: "", `{"data":[{"id":"a","capabilities":[]}]}`: "",
		`{"data":[{"id":"a","capabilities":["completion"]}]}`:                                                            "image,audio,video,embeddings",
		`{"data":[{"id":"a","capabilities":["completion","vision","tools"]}]}`:                                           "audio,video,embeddings",
		`{"models":[{"capabilities":["completion","multimodal"]}],"data":[{"id":"a"}]}`:                                  "embeddings",
		`{"models":[{"capabilities":["completion"]}],"data":[{"id":"a"},{"id":"x","parent":"a"}]}`:                       "",
		`{"data":[{"id":"a","capabilities":{"vision":false,"completion_chat":true,"function_calling":false}}]}`:          "image,structured_output",
		`{"data":[{"id":"a","capabilities":{"vision":true,"multimodal":false,"json_mode":false,"tools":true}}]}`:         "audio,video",
		`{"data":[{"id":"a","architecture":{"input_modalities":["text","image"]},"supported_parameters":["tools"]}]}`:    "audio,video",
		`{"data":[{"id":"a","architecture":{"input_modalities":["text"]},"supported_parameters":["temperature"]}]}`:      "image,audio,video,structured_output",
		`{"data":[{"id":"a","capabilities":["completion"]},{"id":"b"}]}`:                                                 "",
		`{"data":[{"id":"a","capabilities":["completion"]},{"id":"b","capabilities":["embedding"]}]}`:                    "image,audio,video",
		`{"data":[{"id":"a","capabilities":["completion","vision"]},{"id":"x","parent":"a","capabilities":["vision"]}]}`: "audio,video,embeddings",
		`{"data":[{"id":"a","capabilities":"vision","supported_parameters":7,"architecture":"x"}],"models":{}}`:          "",
		`{"data":[{"id":"a","capabilities":[1,2],"architecture":{"input_modalities":{}}}]}`:                              "",
	} {
		if got, err := listingOf([]byte(text)); got.Lacks.String() != want || err != nil {
			t.Errorf("%s: %v, %v, want %s", text, got.Lacks, err, want)
		}
	}
}

func TestUnloadedModelsOfLists(t *testing.T) {
	for text, want := range map[string]string{
		`{"data":[{"id":"a"},{"id":"b","status":{"value":"unloaded"}},{"id":"c","status":{"value":"loaded"}},{"id":"d","status":{"value":"loading"}}]}`: "[b d]",
		`{"data":[{"id":"b","state":"not-loaded"},{"id":"a","state":"not-loaded"},{"id":"a","loaded":false},{"id":"c","loaded":true}]}`:                 "[a b]",
		`{"data":[{"id":"a","status":"ready","state":7,"loaded":"no"},{"id":"","loaded":false}]}`:                                                       "[]",
		`{"data":[{"id":"` + strings.Repeat("n", 257) + `","loaded":false}]}`:                                                                           "[]",
	} {
		if got, err := listingOf([]byte(text)); fmt.Sprint(got.Unloaded) != want || err != nil {
			t.Errorf("%s: %v, %v, want %s", text, got.Unloaded, err, want)
		}
	}
}

// Lists may be anything. None costs more than the limits, and each failure has its reason.
func TestHostileLists(t *testing.T) {
	release := make(chan struct{})
	zipped := func(size int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(bytes.Repeat([]byte(" "), size))
		_ = z.Close()
		return b.Bytes()
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	bomb := zipped(64 << 20)
	lists := map[string]http.HandlerFunc{
		"/good": text(`{"data":[{"id":"a","max_model_len":4096}]}`), "/html": text("<html>"), "/zero": text(`{"data":[{"id":"a","max_model_len":0}]}`),
		"/less": text(`{"data":[{"id":"a","max_model_len":-1}]}`), "/fraction": text(`{"data":[{"id":"a","max_model_len":1.5}]}`),
		"/text": text(`{"data":[{"id":"a","max_model_len":"4096"}]}`), "/more": text(`{"data":[{"id":"a","max_model_len":1e300}]}`),
		"/huge": text(`{"data":[{"id":"` + strings.Repeat("a", mostList) + `"}]}`), "/deep": text(strings.Repeat("[", 100_000)),
		"/many":  text(`{"data":[` + strings.Repeat(`{"id":"a"},`, mostModels) + `{"id":"a"}]}`),
		"/hangs": func(http.ResponseWriter, *http.Request) { <-release },
		"/bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		},
		"/status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { lists[r.URL.Path](w, r) }))
	defer server.Close()
	defer close(release)
	f := newFetcher(DefaultConfig())
	defer f.close()
	for path, want := range map[string]Reason{
		"/good": "", "/html": HTML, "/zero": BadValue, "/less": BadValue, "/fraction": BadValue, "/text": BadValue, "/more": BadValue,
		"/huge": TooLarge, "/deep": BadValue, "/many": TooLarge, "/hangs": Slow, "/bomb": BadValue, "/status": BadStatus,
	} {
		patience := time.Minute
		if want == Slow {
			patience = 100 * time.Millisecond
		}
		ctx, stop := context.WithTimeout(t.Context(), patience)
		listing, err := f.listing(ctx, server.URL+path)
		stop()
		switch {
		case want == "" && (err != nil || listing.Longest != 4096):
			t.Errorf("%s: %+v, %v", path, listing, err)
		case want != "" && (err == nil || reasonOf(err) != want):
			t.Errorf("%s: %+v, %v, want %s", path, listing, err, want)
		}
	}
}

// A list is read when its endpoint is ready and each 30 s, and told when it has changed. One that cannot be read changes
// nothing.
func TestModelsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		longest, failure, asked := int64(4096), error(nil), 0
		var told []string
		w := newWatch()
		parts := w.parts()
		parts.Listed = func(id scheduling.EndpointID, l Listing) {
			mu.Lock()
			told = append(told, fmt.Sprint(id, " ", l.Longest))
			mu.Unlock()
		}
		s := New(DefaultConfig(), parts, w.log())
		s.fetch = func(context.Context, string) (Reading, error) { return Reading{}, nil }
		s.listing = func(_ context.Context, url string) (Listing, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked++; url != "http://10.0.0.1:80/v1/models" {
				t.Errorf("asked %s", url)
			}
			return Listing{Longest: longest}, failure
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		defer func() { stop(); <-done }()
		want := func(what string, all ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(told) != fmt.Sprint(all) {
				t.Errorf("%s: told %v, want %v", what, told, all)
			}
		}
		s.Follow(poolOf("10.0.0.1:80"))
		time.Sleep(1100 * time.Millisecond)
		want("ready", "0 4096")
		mu.Lock()
		failure = errors.New("gone")
		mu.Unlock()
		time.Sleep(5 * time.Minute)
		want("it cannot be read", "0 4096")
		if asked < 9 || asked > 11 {
			t.Errorf("asked %d times in 5 min", asked)
		}
		mu.Lock()
		longest, failure = 8192, nil
		mu.Unlock()
		time.Sleep(32 * time.Second)
		want("it has changed", "0 4096", "0 8192")
		if len(w.logged()) > 0 {
			t.Errorf("logged %v", w.logged())
		}
	})
}
