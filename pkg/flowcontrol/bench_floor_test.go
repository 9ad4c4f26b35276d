package flowcontrol

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkFloor measures BenchmarkStreams's waiters without a queue: goroutines pass one token on in order of arrival,
// each waiting on its own channel. This is the share of Go's scheduler, for comparison with the others.
func BenchmarkFloor(b *testing.B) {
	for _, waiters := range []int{16, 5000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			line := make(chan chan struct{}, waiters+1)
			stop, finished := make(chan struct{}), make(chan struct{})
			var left, waiting atomic.Int64
			left.Store(int64(b.N))
			var workers sync.WaitGroup
			for range waiters {
				workers.Go(func() {
					turn := make(chan struct{}, 1)
					for {
						line <- turn
						waiting.Add(1)
						select {
						case <-turn:
						case <-stop:
							return
						}
						if left.Add(-1) == 0 {
							close(finished)
						}
						select {
						case next := <-line:
							next <- struct{}{}
						case <-stop:
							return
						}
					}
				})
			}
			for waiting.Load() < int64(waiters) {
			}
			b.ResetTimer()
			(<-line) <- struct{}{}
			<-finished
			b.StopTimer()
			close(stop)
			workers.Wait()
		})
	}
}
