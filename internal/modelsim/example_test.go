package modelsim_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

func Example() {
	s, err := modelsim.Start(modelsim.Fixed(4, time.Millisecond))
	if err != nil {
		panic(err)
	}
	defer s.Close()
	s.Inject(1, modelsim.Quirk{Status: http.StatusServiceUnavailable})
	for range 2 {
		resp, err := http.Post(s.URL()+"/v1/completions", "application/json",
			strings.NewReader(`{"prompt":"How deep is the river?","max_tokens":4}`))
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, strings.Contains(string(body), `"completion_tokens":4`))
	}
	stats := s.Stats()
	fmt.Println(stats.Completed, "completed,", stats.Failed, "failed")
	// Output:
	// 503 false
	// 200 true
	// 1 completed, 1 failed
}
