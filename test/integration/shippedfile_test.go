package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wantEnvoysError fails the test unless an answer is an error of Envoy's own in the shape of OpenAI's API.
func wantEnvoysError(t *testing.T, got answer, status int, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	err := json.Unmarshal([]byte(got.body), &e)
	if got.err != nil || err != nil || got.status != status || got.reason() != "" || e.Error.Code != code ||
		e.Error.Message == "" || e.Error.Type == "" || got.header.Get("content-type") != "application/json" {
		t.Errorf("got %d %q %.300q (%v, %v), want Envoy's own %d with the code %q",
			got.status, got.reason(), got.body, got.err, err, status, code)
	}
}

// withUploads is the path of recommended.yaml with its commented route for uploads in effect, as a user would do it.
func withUploads(t *testing.T) string {
	t.Helper()
	shipped, err := os.ReadFile("../../config/envoy/recommended.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(shipped), "\n")
	taken := 0
	for i, line := range lines {
		begin := strings.Index(line, "# ")
		if begin < 0 || strings.TrimSpace(line[:begin]) != "" {
			continue
		}
		if begins := strings.HasPrefix(line[begin:], "# - match: { path: /v1/files }"); begins || taken > 0 && i == taken+1 {
			lines[i], taken = line[:begin]+line[begin+2:], i
		}
	}
	if taken == 0 {
		t.Fatal("recommended.yaml has no commented route for uploads")
	}
	path := filepath.Join(t.TempDir(), "uploads.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
