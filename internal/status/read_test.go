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
