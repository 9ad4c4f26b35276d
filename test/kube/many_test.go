package kube

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// churn is the duration of the changes of readiness. The figure to show is 60 s.
var churn = flag.Duration("kube.churn", 15*time.Second, "how long the readiness of 500 pods changes")

const (
	manyPods      = 500
	changesPerSec = 200
	quietEvery    = 5 * time.Second
	clients       = 32
)

// In TestManyPodsChange 500 pods, each at its own loopback address, change their readiness 200 times per second under
// load. At each quiet point the band is that of the ready pods. No request goes to a pod whose unreadiness was
// acknowledged more than a second before, and none is lost. In the end nothing has grown.
func TestManyPodsChange(t *testing.T) {
	w := newWorld(t)
	fleet := startFleet(t)
	w.apply(role, strings.ReplaceAll(pool, "number: 8000", fmt.Sprint("number: ", fleet.port)))
	w.inParallel(manyPods, func(ctx context.Context, i int) error {
		if err := w.createPod(ctx, fmt.Sprint("p", i)); err != nil {
			return err
		}
		return fleet.set(ctx, w, i, true)
	})
	e := w.epp("--pool-name=chat", "--enable-pprof", "--v=0", "--record=0") // a recording fills its memory first
	e.ready(true)
	e.wantBand(manyPods)
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{Config: "recommended", Weir: e.Address, ModelServers: fleet.addresses()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { envoy.Kill() })

	load := startLoad(t, envoy.Addr())
	allReady := func() {
		w.inParallel(manyPods, func(ctx context.Context, i int) error { return fleet.set(ctx, w, i, true) })
		time.Sleep(time.Second)
		e.wantBand(manyPods)
	}
	fleet.change(t, w, quietEvery) // so that connections, buffers and caches have their size
	allReady()
	before := e.settled(load)
	changes, changing := 0, time.Duration(0)
	for changing < *churn {
		began := time.Now()
		changes += fleet.change(t, w, quietEvery)
		changing += time.Since(began)
		time.Sleep(time.Second)
		e.wantBand(fleet.ready())
	}
	rate := float64(changes) / changing.Seconds()
	allReady()
	after := e.settled(load)
	load.stop()
	t.Logf("%d changes of readiness, %.0f/s between the quiet points; %d requests; the latest to a pod that was not ready was sent %s after "+
		"that was acknowledged; heap %d KiB, then %d KiB; goroutines %d, then %d",
		changes, rate, load.done.Load(), fleet.latest(), before.heap>>10, after.heap>>10, before.goroutines, after.goroutines)
	if n := load.lost.Load(); n > 0 {
		t.Errorf("%d requests were lost; the first: %s", n, load.firstLost.Load())
	}
	if load.done.Load() < 1000 {
		t.Errorf("only %d requests: that is no load", load.done.Load())
	}
	if n := fleet.late.Load(); n > 0 {
		t.Errorf("%d requests went to pods that had not been ready for more than 3 s, the latest for %s", n, fleet.latest())
	}
	if after.heap > before.heap+before.heap/20 {
		t.Errorf("the heap is %d bytes, and was %d at the start", after.heap, before.heap)
	}
	if after.goroutines > before.goroutines+5 { // connections of Envoy's, and their keepalive
		t.Errorf("%d goroutines, %d at the start; now\n%s\nthen\n%s", after.goroutines, before.goroutines, after.where, before.where)
	}
}

// fleet is one simulated model server at the addresses of all pods, which it distinguishes by the address of a request.
type fleet struct {
	sim  *modelsim.Handler
	port int
	pods [manyPods]struct {
		mu       sync.Mutex
		ready    bool
		notSince time.Time // time of the acknowledged unreadiness; zero: it may be ready
	}
	late  atomic.Int64
	worst atomic.Int64 // nanoseconds
}

func ipOf(i int) string { return fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250) }

func startFleet(t *testing.T) *fleet {
	t.Helper()
	sim, err := modelsim.NewHandler(modelsim.Fixed(8*manyPods, 50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{sim: sim}
	server := &http.Server{Handler: http.HandlerFunc(f.serve)} //nolint:gosec // its only client is Envoy
	for i := range manyPods {
		listener, err := net.Listen("tcp", net.JoinHostPort(ipOf(i), fmt.Sprint(f.port)))
		if err != nil {
			t.Fatal(err)
		}
		f.port = listener.Addr().(*net.TCPAddr).Port
		go func() { _ = server.Serve(listener) }()
	}
	t.Cleanup(func() { _ = server.Close(); sim.Close() })
	return f
}

func (f *fleet) addresses() (all []string) {
	for i := range manyPods {
		all = append(all, net.JoinHostPort(ipOf(i), fmt.Sprint(f.port)))
	}
	return all
}

func (f *fleet) serve(w http.ResponseWriter, r *http.Request) {
	ip := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).IP.To4()
	pod := &f.pods[int(ip[2])*250+int(ip[3])-1]
	pod.mu.Lock()
	since := pod.notSince
	pod.mu.Unlock()
	if sent, err := strconv.ParseInt(r.Header.Get(sentHeader), 10, 64); err == nil && !since.IsZero() {
		ago := time.Unix(0, sent).Sub(since) // Weir decided after that; the rest of the time is not Weir's
		for worst := f.worst.Load(); int64(ago) > worst && !f.worst.CompareAndSwap(worst, int64(ago)); worst = f.worst.Load() {
		}
		if ago > 3*time.Second {
			f.late.Add(1)
		}
	}
	f.sim.ServeHTTP(w, r)
}

func (f *fleet) latest() time.Duration { return time.Duration(f.worst.Load()) }

func (f *fleet) ready() (n int) {
	for i := range f.pods {
		if f.pods[i].ready {
			n++
		}
	}
	return n
}

// set changes a pod's readiness. One goroutine at a time does that for a pod.
func (f *fleet) set(ctx context.Context, w *world, i int, ready bool) error {
	pod := &f.pods[i]
	if ready {
		pod.mu.Lock()
		pod.notSince = time.Time{} // before it is asked for: Weir may know before we do
		pod.mu.Unlock()
	}
	if err := w.setStatus(ctx, fmt.Sprint("p", i), ipOf(i), ready); err != nil {
		return err
	}
	pod.mu.Lock()
	defer pod.mu.Unlock()
	pod.ready = ready
	if !ready {
		pod.notSince = time.Now()
	}
	return nil
}

// change changes pods' readiness at the rate for a while, and returns the number of changes. Every fifth pod stays
// ready.
func (f *fleet) change(t *testing.T, w *world, length time.Duration) int {
	t.Helper()
	const workers = 40 // each has pods of its own
	var made atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	for worker := range workers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(worker), uint64(length)))
			next := time.Now()
			for end := next.Add(length); next.Before(end); next = next.Add(workers * time.Second / changesPerSec) {
				time.Sleep(time.Until(next))
				i := worker + worker/4 + 1 // 1 to 49, no multiple of 5
				i += 50 * random.IntN(manyPods/50)
				if err := f.set(ctx, w, i, !f.pods[i].ready); err != nil {
					return err
				}
				made.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return int(made.Load())
}

// inParallel calls do for 0 to n-1, several at a time.
func (w *world) inParallel(n int, do func(ctx context.Context, i int) error) {
	w.t.Helper()
	group, ctx := errgroup.WithContext(w.t.Context())
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		w.t.Fatal(err)
	}
}

// wantBand waits until the pool's bounds are those of so many ready pods: 1.8, 2 and 2.2 for each.
func (e *epp) wantBand(ready int) {
	e.t.Helper()
	expect.Eventually(e.t, fmt.Sprintf("the band of %d ready pods", ready), func() error {
		page, err := expect.Read(e.metrics)
		if err != nil {
			return err
		}
		for name, each := range map[string]float64{"weir_lower_bound": 1.8, "weir_watermark": 2, "weir_upper_bound": 2.2} {
			got, ok := metricIn(page, name+`{pool="chat"}`)
			if want := each * float64(ready); !ok || math.Abs(got-want) > 1e-6 {
				return fmt.Errorf("%s is %g, want %g", name, got, want)
			}
		}
		return nil
	})
}

// settled has epp's resources while nothing is in flight: the least of several moments.
type settled struct {
	heap       int // bytes in use right after a collection
	goroutines int // and their allocation sites
	where      string
}

// settled is least while the load pauses.
func (e *epp) settled(l *load) (least settled) {
	e.t.Helper()
	l.pause(func() { least = e.least() })
	return least
}

// least reads the profiles for it. The metrics would count the scrape's own resources, which differ between scrapes.
func (e *epp) least() (least settled) {
	e.t.Helper()
	for i := range 5 {
		if i > 0 {
			time.Sleep(300 * time.Millisecond)
		}
		heap, _ := e.profile("heap?gc=1&debug=1", "# HeapAlloc = %d")
		goroutines, where := e.profile("goroutine?debug=1", "goroutine profile: total %d")
		if i == 0 || heap < least.heap {
			least.heap = heap
		}
		if i == 0 || goroutines < least.goroutines {
			least.goroutines, least.where = goroutines, where
		}
	}
	return least
}

// profile reads a profile of epp and the number in the line with this form.
func (e *epp) profile(name, form string) (n int, text string) {
	e.t.Helper()
	text, err := expect.Read(strings.TrimSuffix(e.page, "/statusz") + "/debug/pprof/" + name)
	if err != nil {
		e.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if _, err := fmt.Sscanf(line, form, &n); err == nil {
			return n, text
		}
	}
	e.t.Fatalf("the profile %s has no line %q:\n%.300s", name, form, text)
	return 0, ""
}

// load is clients that each send one request after the other through Envoy.
type load struct {
	gate       sync.RWMutex // held for reading by each request, for writing while the load pauses
	end        context.CancelFunc
	ended      sync.WaitGroup
	done, lost atomic.Int64
	firstLost  atomic.Value
}

func startLoad(t *testing.T, address string) *load {
	ctx, end := context.WithCancel(context.Background())
	l := &load{end: end}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	body := []byte(`{"model":"tiny","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`)
	for range clients {
		l.ended.Go(func() {
			for ctx.Err() == nil {
				l.gate.RLock()
				err := post(client, "http://"+address+"/v1/chat/completions", body)
				l.gate.RUnlock()
				if err != nil {
					l.lost.Add(1)
					l.firstLost.CompareAndSwap(nil, err.Error())
				}
				l.done.Add(1)
			}
		})
	}
	t.Cleanup(func() { l.stop(); transport.CloseIdleConnections() })
	return l
}

// sentHeader has the time of a client's request, in Unix nanoseconds.
const sentHeader = "x-sent"

func post(client *http.Client, url string, body []byte) error {
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set(sentHeader, strconv.FormatInt(time.Now().UnixNano(), 10))
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.300s", response.StatusCode, text)
	}
	return err
}

// pause calls do while no request is in flight.
func (l *load) pause(do func()) {
	l.gate.Lock()
	defer l.gate.Unlock()
	do()
}

func (l *load) stop() {
	l.end()
	l.ended.Wait()
}
