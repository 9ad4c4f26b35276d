package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// An idle Weir uses no processor time: nothing polls and no timer runs. With 5,000 known flows and 100 endpoints it
// uses at most 10 ms in 10 s; scraping and probing are off. What remains is gRPC's keepalive and the runtime's own
// monitoring.
func TestIdleUsesNoCPU(t *testing.T) {
	t.Parallel()
	const (
		flows     = 5000
		endpoints = 100
		window    = 10 * time.Second
		most      = 30 * time.Millisecond // three thousandths of a core; a tick each 10 ms takes more
	)
	models := make([]modelsim.Config, endpoints)
	for i := range models {
		models[i] = modelsim.Instant()
	}
	s := start(t, setup{
		models: models, flags: []string{"--scrape-path="},
		config: `flows: { key: ["header:x-llm-d-inference-fairness-id"] }` + "\n",
	})

	tenants := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range tenants {
				if got := s.send(ask{tenant: fmt.Sprintf("tenant-%d", i)}); got.status != 200 {
					t.Errorf("tenant %d: %d %v %s", i, got.status, got.err, got.body)
				}
			}
		})
	}
	for i := range flows {
		tenants <- i
	}
	close(tenants)
	workers.Wait()
	s.epp.settled()
	if n := s.epp.outcomes()["dispatched"]; n != flows {
		t.Fatalf("%d dispatched, want %d", n, flows)
	}

	// Right after the load the runtime still returns memory. The minimum over a few windows is the idle cost. A poll or
	// a timer would show in each of them.
	least := time.Hour
	for range 3 {
		before := s.epp.cpu()
		time.Sleep(window) // this is the measured window, not a wait for an event
		least = min(least, s.epp.cpu()-before)
		if least <= most {
			break
		}
	}
	t.Logf("%v of processor in %v", least, window)
	if least > most {
		t.Errorf("an idle epp used %v of processor in %v, want at most %v", least, window, most)
	}
}

// cpu returns the processor time of all threads of epp, in nanoseconds as the scheduler counts them: /proc/pid/stat has
// a resolution of 10 ms.
func (e *epp) cpu() time.Duration {
	e.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", e.Pid()))
	if err != nil || len(files) == 0 {
		e.t.Fatalf("no schedstat of epp (needs Linux): %v", err)
	}
	total := time.Duration(0)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			e.t.Fatal(err)
		}
		running, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			e.t.Fatal(err)
		}
		total += time.Duration(running)
	}
	return total
}
