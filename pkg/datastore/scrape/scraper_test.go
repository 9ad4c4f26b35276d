package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// An engine is read once a second; what it says stands for 3 s, and its foreign load falls until 10 s.
func TestReadingsGetOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := newWatch(), &engineAt{reading: Reading{Running: 30, Waiting: 14, Lacking: 14}}
		w.own = 10
		s := started(t, w, e.fetch)
		s.Follow(poolOf("10.0.0.1:80"))
		time.Sleep(60*time.Second + time.Millisecond)
		synctest.Wait()
		e.set(func() {
			if e.asked < 58 || e.asked > 63 {
				t.Errorf("%d scrapes in 60 s", e.asked)
			}
		})
		signals, foreign := w.of(0)
		if !signals.Known || signals.Running != 30 || signals.Waiting != 14 || foreign != 34 {
			t.Fatalf("%+v, %d foreign", signals, foreign)
		}
		status, _ := s.Status(0)
		e.set(func() { e.err = errors.New("gone") })
		least := foreign
		for time.Since(status.At) < 14*time.Second {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			age := time.Since(status.At)
			signals, foreign := w.of(0)
			if foreign > least {
				t.Errorf("after %v: %d foreign, %d before", age, foreign, least)
			}
			least = foreign
			switch {
			case age < 3*time.Second && (!signals.Known || foreign != 34):
				t.Errorf("after %v: %+v, %d foreign", age, signals, foreign)
			case age > 4300*time.Millisecond && signals.Known:
				t.Errorf("after %v: still known", age)
			case age > 7*time.Second && foreign > 25, age > 11500*time.Millisecond && foreign > 0:
				t.Errorf("after %v: %d foreign", age, foreign)
			}
		}
		if got, _ := s.Status(0); got.Err == nil || got.At != status.At {
			t.Errorf("status %+v", got)
		}
		e.set(func() { e.err = nil })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if signals, foreign := w.of(0); !signals.Known || foreign != 34 {
			t.Errorf("back again: %+v, %d", signals, foreign)
		}
	})
}

// One warning by endpoint, whatever the number of failures, one line when the page can be read again; and fewer scrapes.
func TestWarnsOnceByEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, bad := newWatch(), &engineAt{err: &failure{reason: BadStatus, text: "status 404"}}
		good := &engineAt{}
		s := started(t, w, func(ctx context.Context, url string) (Reading, error) {
			if strings.Contains(url, "10.0.0.1") {
				return bad.fetch(ctx, url)
			}
			return good.fetch(ctx, url)
		})
		s.Follow(poolOf("10.0.0.1:80", "10.0.0.2:80"))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if lines := w.logged(); len(lines) != 1 || !strings.Contains(lines[0], "10.0.0.1:80") || !strings.Contains(lines[0], "status 404") {
			t.Errorf("the log: %v", lines)
		}
		bad.set(func() {
			if bad.asked > 60 || bad.asked < 35 || w.failures(BadStatus) != bad.asked {
				t.Errorf("%d scrapes in 10 min, %v counted", bad.asked, w.failures(BadStatus))
			}
			bad.err = nil
		})
		if w.told(0) > 0 {
			t.Error("told of nothing")
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if lines := w.logged(); len(lines) != 2 || !strings.Contains(lines[1], "again") {
			t.Errorf("the log: %v", lines)
		}
	})
}

// A page whose families change their types, their labels and their numbers of series from one scrape to the next is read as it
// is: what it has no number for fails that scrape alone.
func TestPagesThatChange(t *testing.T) {
	p := newPage(Names{})
	const running, waiting = "vllm:num_requests_running", "vllm:num_requests_waiting"
	for _, c := range []struct {
		page             string
		running, waiting int
		fails            Reason
	}{
		{"# TYPE " + running + " gauge\n" + running + "{engine=\"0\"} 3\n" + waiting + "{engine=\"0\"} 1\n", 3, 1, ""},
		{"# TYPE " + running + " counter\n" + running + " 4\n" + waiting + " 2\n", 4, 2, ""},
		{"# TYPE " + running + " histogram\n" + running + "_bucket{le=\"1\"} 9\n" + running + " 5\n" + waiting + " 0\n", 5, 0, ""},
		{"# TYPE " + running + " gauge\n" + running + " NaN\n" + waiting + " 0\n", 0, 0, BadValue},
		{running + "{engine=\"0\"} 2\n" + running + "{engine=\"1\"} 3\n" + waiting + "{engine=\"0\"} 1\n" + waiting + "{engine=\"1\"} 1\n", 5, 2, ""},
		{"# TYPE " + running + " summary\n# TYPE " + running + " gauge\n" + running + " 1\n" + waiting + " 1\n", 1, 1, ""},
	} {
		r, err := p.read(strings.NewReader(c.page), 1<<20)
		switch {
		case c.fails != "" && (err == nil || reasonOf(err) != c.fails):
			t.Errorf("%q: %v, want %s", c.page, err, c.fails)
		case c.fails == "" && (err != nil || r.Running != c.running || r.Waiting != c.waiting):
			t.Errorf("%q: %+v, %v", c.page, r, err)
		}
	}
}

// Hanging engines do not delay the others.
func TestHangingEnginesDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, good := newWatch(), &engineAt{}
		s := started(t, w, func(ctx context.Context, url string) (Reading, error) {
			if strings.HasPrefix(url, "http://10.0.0.1:") {
				return good.fetch(ctx, url)
			}
			<-ctx.Done()
			return Reading{}, ctx.Err()
		})
		pool := []string{"10.0.0.1:80"}
		for i := range 1500 {
			pool = append(pool, fmt.Sprintf("10.1.%d.%d:80", i/200, i%200+1))
		}
		s.Follow(poolOf(pool...))
		time.Sleep(time.Minute)
		synctest.Wait()
		good.set(func() { good.asked = 0 })
		time.Sleep(time.Minute)
		synctest.Wait()
		good.set(func() {
			if good.asked < 50 {
				t.Errorf("%d scrapes in 60 s", good.asked)
			}
		})
		if w.failures(Slow) == 0 {
			t.Error("nothing failed")
		}
	})
}

// trtllm-serve has its page elsewhere: it is found there, and then asked for there alone.
func TestAnotherPathIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		var mu sync.Mutex
		asked := map[string]int{}
		s := started(t, w, func(_ context.Context, url string) (Reading, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[url]++
			if strings.HasSuffix(url, ":80/metrics") {
				return Reading{}, &failure{reason: NoKnownMetric}
			}
			return Reading{Running: 1}, nil
		})
		s.Follow(poolOf("10.0.0.1:80"))
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if n := asked["http://10.0.0.1:80/prometheus/metrics"]; asked["http://10.0.0.1:80/metrics"] != 1 || n < 50 || len(w.logged()) > 0 {
			t.Errorf("asked for %v, the log has %v", asked, w.logged())
		}
	})
}

// Only the leader scrapes, and one that leads no more knows nothing.
func TestOnlyTheLeaderScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := newWatch(), &engineAt{reading: Reading{Running: 9}}
		s := started(t, w, e.fetch)
		s.Lead(false)
		s.Follow(poolOf("10.0.0.1:80"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := e.count(); n != 0 {
			t.Fatalf("%d scrapes", n)
		}
		s.Lead(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if signals, foreign := w.of(0); !signals.Known || foreign != 9 {
			t.Fatalf("%+v, %d", signals, foreign)
		}
		e.set(func() { e.delay = time.Second })
		time.Sleep(1500 * time.Millisecond) // a scrape is under way, or is not
		s.Lead(false)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		before := e.count()
		if signals, foreign := w.of(0); signals.Known || foreign != 0 {
			t.Fatalf("%+v, %d", signals, foreign)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := e.count() - before; n != 0 {
			t.Errorf("%d scrapes", n)
		}
	})
}

// Endpoints that are not ready, or not in the pool any more, are not asked; nor is a scrape of one told that has left.
func TestFollowsTheReadyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		var mu sync.Mutex
		asked := map[string]int{}
		s := started(t, w, func(_ context.Context, url string) (Reading, error) {
			mu.Lock()
			asked[url]++
			mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			return Reading{Running: 1}, nil
		})
		s.Follow(scheduling.NewSnapshot(1, []scheduling.Endpoint{
			{ID: 0, Address: "10.0.0.1:80", Ready: true}, {ID: 1, Address: "10.0.0.2:80"}, {ID: 2, Address: "[fd00::1]:80", Ready: true},
		}))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, []string{"http://10.0.0.1:80/metrics", "http://[fd00::1]:80/metrics"}) {
			t.Errorf("asked %v", got)
		}
		clear(asked)
		mu.Unlock()
		s.Follow(poolOf())
		synctest.Wait()
		told := w.told(0) + w.told(2)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if n := w.told(0) + w.told(2) - told; len(asked) != 0 || n != 0 {
			t.Errorf("asked %v, told %d times", asked, n)
		}
	})
}

// Servers may do anything to a scraper. Each failure has its reason, and costs no more than the limits.
func TestHostileServers(t *testing.T) {
	release := make(chan struct{})
	big := bytes.Repeat([]byte("vllm:time_per_output_token_seconds_bucket{le=\"0.01\"} 12\n"), 1000)
	pages := map[string]http.HandlerFunc{
		"/good":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, vllmPage) },
		"/status":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"/redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) },
		"/html": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, vllmPage)
		},
		"/html-body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "<html>")
		},
		"/huge": func(w http.ResponseWriter, _ *http.Request) {
			for range 50 << 20 / len(big) {
				if _, err := w.Write(big); err != nil {
					return
				}
			}
		},
		"/claims-huge": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "52428800") },
		"/drip": func(w http.ResponseWriter, r *http.Request) {
			for {
				_, _ = io.WriteString(w, "#\n")
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
		"/hangs": func(http.ResponseWriter, *http.Request) { <-release },
		"/breaks": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "vllm")
		},
		"/json": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"object":"list"}`) },
		"/bomb": func(w http.ResponseWriter, _ *http.Request) { // 64 MB of blanks; nobody has asked for gzip
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
			_ = z.Close()
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pages[r.URL.Path](w, r) }))
	defer server.Close()
	defer close(release)
	for path, want := range map[string]Reason{
		"/good": "", "/status": BadStatus, "/redirect": BadStatus, "/html": HTML, "/html-body": HTML, "/huge": TooLarge,
		"/claims-huge": TooLarge, "/drip": Slow, "/hangs": Slow, "/breaks": Unreachable, "/json": NoKnownMetric,
		"/bomb": NoKnownMetric,
	} {
		t.Run(path, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Path = path
			f := newFetcher(cfg)
			defer f.close()
			patience := time.Minute
			if want == Slow {
				patience = 200 * time.Millisecond
			}
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			reading, err := f.fetch(ctx, f.urlOf(server.Listener.Addr().String(), 0))
			if want == "" {
				if err != nil || reading.Running != 8 {
					t.Errorf("%+v, %v", reading, err)
				}
				return
			}
			if err == nil || reasonOf(err) != want {
				t.Errorf("got %v (%s), want %s", err, reasonOf(err), want)
			}
		})
	}
	closed := httptest.NewServer(nil)
	address := closed.Listener.Addr().String()
	closed.Close()
	f := newFetcher(DefaultConfig())
	if _, err := f.fetch(t.Context(), f.urlOf(address, 0)); err == nil || reasonOf(err) != Unreachable {
		t.Errorf("a closed port: %v", err)
	}
}

// The page may be on another port and behind TLS.
func TestWhereThePageIs(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, vllmPage) }))
	defer server.Close()
	cfg := DefaultConfig()
	cfg.Scheme, cfg.Port = "https", server.Listener.Addr().(*net.TCPAddr).Port
	f := newFetcher(cfg)
	defer f.close()
	if r, err := f.fetch(t.Context(), f.urlOf("127.0.0.1:1", 0)); err != nil || r.Running != 8 {
		t.Errorf("%+v, %v", r, err)
	}
	cfg.Insecure = false
	g := newFetcher(cfg)
	defer g.close()
	if _, err := g.fetch(t.Context(), g.urlOf("127.0.0.1:1", 0)); err == nil {
		t.Error("an unknown certificate was accepted")
	}
}

// Every scrape of an endpoint uses the one connection.
func TestOneKeptConnection(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pageOf(40 << 10)) }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	f := newFetcher(DefaultConfig())
	defer f.close()
	for range 20 {
		if _, err := f.fetch(t.Context(), f.urlOf(server.Listener.Addr().String(), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestValidate(t *testing.T) {
	good := DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*Config){
		"Path": func(c *Config) { c.Path = "metrics" }, "Port": func(c *Config) { c.Port = 65536 },
		"Scheme": func(c *Config) { c.Scheme = "ftp" }, "Interval": func(c *Config) { c.Interval = time.Millisecond },
		"Timeout": func(c *Config) { c.Timeout = 0 }, "MostBytes": func(c *Config) { c.MostBytes = 0 },
		"Names.Waiting": func(c *Config) { c.Names.Waiting = "a b" }, "Names.Running": func(c *Config) { c.Names.Running = "a{b=\"c\"" },
		"Names.CacheUsed": func(c *Config) { c.Names.CacheUsed = "a{b}" },
		"Names.Adapters":  func(c *Config) { c.Names.Adapters = "a b" },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// pageOf returns a vLLM's page of about so many bytes.
func pageOf(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size-len(vllmPage); i++ {
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"%v\",model_name=\"meta-llama/Llama-3.1-8B\"} %d.0\n", math.Sqrt(float64(i)), i)
	}
	b.WriteString(vllmPage)
	return b.Bytes()
}

// BenchmarkPage is what the parsing of a page of 40 KB costs.
func BenchmarkPage(b *testing.B) {
	text := pageOf(40 << 10)
	p := newPage(Names{})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.read(bytes.NewReader(text), 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
