package status

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page may have as many bytes as its reader accepts, and no more.
func TestReadIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1000)) }))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	if text, err := Read(t.Context(), address, "/page", nil, 1000); err != nil || len(text) != 1000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := Read(t.Context(), address, "/page", nil, 999); err == nil || !strings.Contains(err.Error(), "/page: more than 999 bytes") {
		t.Errorf("a page that is too large: %v", err)
	}
}

// Another program's answer to a page that it lacks is told as it is: only a page of epp's has epp's port.
func TestReadTellsTheStatus(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, err := Read(t.Context(), strings.TrimPrefix(server.URL, "http://"), "/config_dump", nil, 1000)
	if err == nil || err.Error() != "/config_dump answers 404 Not Found: 404 page not found" {
		t.Errorf("got %v", err)
	}
}
