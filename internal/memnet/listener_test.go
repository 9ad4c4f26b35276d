package memnet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Requests in sequence on one connection are each served to their end: an earlier request's deadline does not cut them
// off. The handler waits, so that the server reads on behind it.
func TestRequestsOfOneConnectionEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		cut := 0
		s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { //nolint:gosec // in memory
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				cut++
			}
		})}
		go func() { _ = s.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: l.Dial}}
		begun := time.Now()
		for range 200 {
			answer, err := client.Get("http://memory/")
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		}
		if cut > 0 || time.Since(begun) != 200*time.Second {
			t.Errorf("%d were cut off, and 200 s took %v", cut, time.Since(begun))
		}
		client.CloseIdleConnections()
		_ = s.Close()
		if _, err := l.Dial(context.Background(), "", ""); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener answers %v", err)
		}
	})
}
