package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error at the start begins with the flag, the key or the file to change, whatever its cause: operators do not know
// the packages of the program.
func TestErrorsBeginWithWhatIsToBeChanged(t *testing.T) {
	dir := t.TempDir()
	missing, broken := filepath.Join(dir, "none"), filepath.Join(dir, "endpoints.yaml")
	if err := os.WriteFile(broken, []byte("endpoints: [ { address: x } ]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	const pool = "--endpoints=192.0.2.1:1"
	here := []string{"--bind-address=127.0.0.1", "--grpc-port=0", "--grpc-health-port=0", "--metrics-port=0", "--debug-port=0"}
	for want, args := range map[string][]string{
		`--endpoints: "foo" is a hostname`:                     {"--endpoints=foo"},
		`--endpoints: "10.0.0.1:1" is listed twice`:            {"--endpoints=10.0.0.1:1,10.0.0.1:1"},
		"--endpoints: --endpoints-file is given already":       {pool, "--endpoints-file=" + broken},
		`--probe-path: "abc"`:                                  {pool, "--probe-path=abc"},
		"--probe-interval: 1ms":                                {pool, "--probe-path=/health", "--probe-interval=1ms"},
		"--config-file: open " + missing:                       {pool, "--config-file=" + missing},
		`--config-text: invalid: spam: unknown field (line 1)`: {pool, "--config-text=spam: 1"},
		`profile: "foo": must be one of`:                       {pool, "--profile=foo"},
		"fairRequestQueue.totalCapacity: 0 (from a flag):":     {pool, "--total-capacity=0"},
		"--client-ca-file: " + missing:                         append([]string{pool, "--client-ca-file=" + missing}, here...),
		"--client-ca-file: ca.crt: has no use with":            {pool, "--secure-serving=false", "--client-ca-file=ca.crt"},
		"--metrics-cert-path: dir: has no use without":         {pool, "--metrics-cert-path=dir"},
		`--tls-min-version: "1.1": must be one of 1.2, 1.3`:    {pool, "--tls-min-version=1.1"},
		"--tls-min-version: 1.3: has no use with":              {pool, "--secure-serving=false", "--tls-min-version=1.3"},
		"--grpc-max-recv-msg-size: -1: must be from 0":         {pool, "--grpc-max-recv-msg-size=-1"},
		"--grpc-max-recv-msg-size: 4194304: must be at least":  append([]string{pool, "--grpc-max-recv-msg-size=4194304"}, here...),
		"--cert-path: ":      append([]string{pool, "--cert-path=" + missing}, here...),
		"--endpoints-file: ": append([]string{"--endpoints-file=" + missing, "--secure-serving=false"}, here...),
		"--endpoints-file: " + broken + ": endpoints[0].address: ":    append([]string{"--endpoints-file=" + broken, "--secure-serving=false"}, here...),
		fmt.Sprintf("--metrics-port: %d: must be free", port):         append([]string{pool}, append(here, fmt.Sprintf("--metrics-port=%d", port))...),
		`--bind-address: "192.0.2.1": must be an address of`:          {pool, "--bind-address=192.0.2.1", "--grpc-port=0"},
		"--ports-file: open " + filepath.Join(missing, "ports.json."): append([]string{pool, "--secure-serving=false", "--ports-file=" + filepath.Join(missing, "ports.json")}, here...),
	} {
		var stdout, stderr bytes.Buffer
		if code := Main(args, &stdout, &stderr); code == 0 {
			t.Errorf("%v: exit code 0", args)
		}
		if !someLineBegins(stderr.String(), want) {
			t.Errorf("%v: no line begins with %q:\n%s", args, want, stderr.String())
		}
	}
}

// someLineBegins reports whether a line of the output, or the error of a line of the log, begins with the text.
func someLineBegins(output, text string) bool {
	for line := range strings.Lines(output) {
		var logged struct{ Error string }
		if err := json.Unmarshal([]byte(line), &logged); err == nil {
			line = logged.Error
		}
		if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(line, "epp: ")), text) {
			return true
		}
	}
	return false
}

// The error for an unknown flag suggests the intended one: after a typing error, or for the beginning of its name.
func TestUnknownFlags(t *testing.T) {
	for written, meant := range map[string]string{
		"--watermark=2":      "unknown flag: --watermark (did you mean --watermark-per-backend?)",
		"--grcp-port=1":      "unknown flag: --grcp-port (did you mean --grpc-port?)",
		"--endpoint=1.2.3.4": "unknown flag: --endpoint (did you mean --endpoints?)",
		"--quite-another":    "unknown flag: --quite-another\n",
	} {
		var stdout, stderr bytes.Buffer
		if code := Main([]string{written}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), meant) {
			t.Errorf("%s: exit code %d, want %q in\n%s", written, code, meant, stderr.String())
		}
	}
}
