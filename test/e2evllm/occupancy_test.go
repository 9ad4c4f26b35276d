//go:build e2evllm

package e2evllm

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// occupancy is the number of requests in the engine, according to its gauges.
type occupancy struct{ running, waiting int }

func (o occupancy) sum() int { return o.running + o.waiting }

// occupancy reads the engine's gauges.
func (e *engine) occupancy() (occupancy, error) {
	response, err := http.Get("http://" + e.address + "/metrics")
	if err != nil {
		return occupancy{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return occupancy{}, err
	}
	running, err := gauge(text, "vllm:num_requests_running")
	if err != nil {
		return occupancy{}, err
	}
	waiting, err := gauge(text, "vllm:num_requests_waiting")
	return occupancy{running, waiting}, err
}

// gauge finds the one value of a metric with labels in an exposition.
func gauge(text []byte, name string) (int, error) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+"{")); ok {
			value, err := strconv.ParseFloat(string(bytes.TrimSpace(rest[bytes.LastIndexByte(rest, '}')+1:])), 64)
			return int(value), err
		}
	}
	return 0, fmt.Errorf("vLLM has no metric %s", name)
}

// sample is the engine's occupancy at a time.
type sample struct {
	at time.Time // when the answer was there
	occupancy
}

// watch reads the occupancy at this interval, or as fast as the engine answers, until stop is called, which returns the
// samples.
func (e *engine) watch(t *testing.T, every time.Duration) (stop func() []sample) {
	t.Helper()
	var samples []sample
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			o, err := e.occupancy()
			if err != nil {
				t.Errorf("reading the engine's metrics: %v", err)
				return
			}
			samples = append(samples, sample{time.Now(), o})
		}
	}()
	stop = sync.OnceValue(func() []sample {
		close(over)
		<-ended
		return samples
	})
	t.Cleanup(func() { stop() })
	return stop
}

// await waits until the engine's occupancy has this value.
func (e *engine) await(t *testing.T, want occupancy) {
	t.Helper()
	var last occupancy
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if last, err = e.occupancy(); err != nil {
			t.Fatal(err)
		}
		if last == want {
			return
		}
	}
	t.Fatalf("the engine has %+v, want %+v", last, want)
}
