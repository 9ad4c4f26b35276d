package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tar is a new file that only its owner can read. Without an epp there is none.
func TestCollectCommand(t *testing.T) {
	address := serveStatus(t, healthyPool()).address()
	closed := httptest.NewServer(nil)
	closed.Close()
	gone := strings.TrimPrefix(closed.URL, "http://")
	out := filepath.Join(t.TempDir(), "state.tar")
	args := []string{"collect", "--address=" + address, "--metrics-address=" + gone, "--envoy-address=", "--out=" + out}
	var stdout, stderr bytes.Buffer
	if code := run(args, &stdout, &stderr); code != 0 || stdout.String() != out+"\n" || !strings.Contains(stderr.String(), gone+"/metrics: ") {
		t.Errorf("exit code %d, %s%s", code, stdout.String(), stderr.String())
	}
	info, err := os.Stat(out)
	if err != nil || info.Mode() != 0o600 || info.Size() < 1024 {
		t.Errorf("%v, %v", info, err)
	}
	checkCommands(t, map[string]commandTest{
		"the file is there":   {args, 1, nil, []string{"--out: open " + out + ": file exists"}},
		"to standard output":  {[]string{"collect", "--address=" + address, "--metrics-address=", "--envoy-address=", "--out=-"}, 0, []string{"weir-collect/manifest.json"}, nil},
		"nobody answers":      {[]string{"collect", "--address=" + gone, "--metrics-address=", "--envoy-address=", "--out=" + out + "2"}, 2, nil, []string{"no epp answers at an --address: nothing is written"}},
		"an address is wrong": {[]string{"collect", "--address=:"}, 2, nil, []string{`--address: ":": must be HOST:PORT`}},
	})
	if _, err := os.Stat(out + "2"); err == nil {
		t.Error("something was written")
	}
}
