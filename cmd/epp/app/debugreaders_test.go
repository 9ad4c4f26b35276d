package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A crowd of readers of the debug port gets sixteen pages at a time. Further readers get a Retry-After, readers that
// stop reading lose their places, and neither the tail nor the recording waits for a place.
func TestPagesHaveFewReaders(t *testing.T) {
	o := testOptions()
	setRecording(&o, 1)
	r := start(t, o)
	var crowd []*stuck
	var all sync.WaitGroup
	for range mostPages {
		s := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), time.Time{}}
		crowd = append(crowd, s)
		all.Go(func() { r.debugServer.Handler.ServeHTTP(s, httptest.NewRequest(http.MethodGet, "/debug/status", nil)) })
	}
	for _, s := range crowd {
		<-s.writing
		if left := time.Until(s.deadline); left <= 0 || left > writeTimeout {
			t.Errorf("one that does not read is left in %v", left)
		}
	}
	for _, path := range []string{"/", "/debug/status", "/statusz", "/debug/flows", "/debug/rejections", "/debug/statistics", "/debug/config"} {
		if status, text := r.debug(path); status != http.StatusServiceUnavailable || !strings.Contains(text, "try again") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
		t.Errorf("the recording: %d", status)
	}
	r.readTail("")
	for _, s := range crowd {
		close(s.let)
	}
	all.Wait()
	if status, text := r.debug("/debug/status"); status != http.StatusOK {
		t.Errorf("later: %d %s", status, text)
	}
}
