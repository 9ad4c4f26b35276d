package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
)

// asShipped are epp's flags as stated in the shipped files of Envoy.
var asShipped = []string{
	"--config-file=../../config/weir.yaml", "--secure-serving=false",
	"--endpoints=127.0.0.1:8001,127.0.0.1:8002,127.0.0.1:8003,127.0.0.1:8004",
}

const recommendedEnvoy = "../../config/envoy/recommended.yaml"

// The exit code is 0 without findings, 1 with findings, and 2 for an unreadable file. A finding has its line.
func TestDoctor(t *testing.T) {
	text, err := os.ReadFile(recommendedEnvoy)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "response_trailer_mode: SEND\n              metadata", "response_trailer_mode: SKIP\n              metadata", 1)
	broken = strings.Replace(broken, "allow_mode_override: true", "allow_mode_override: false", 1)
	line := strings.Count(broken[:strings.Index(broken, "response_trailer_mode: SKIP")], "\n") + 1
	file := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/config_dump" || r.URL.RawQuery != "include_eds" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(broken))
	}))
	t.Cleanup(admin.Close)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{append([]string{recommendedEnvoy}, asShipped...), 0, "findings: 0\n"},
		{append([]string{"-o", "json", recommendedEnvoy}, asShipped...), 0, `"findings": []`},
		{append([]string{file}, asShipped...), 1, "response-trailers: "},
		{append([]string{file, "--ignore=response-trailers"}, asShipped...), 0, "findings: 0\n"},
		{append([]string{file, "--cluster=another"}, asShipped...), 2, `--cluster: "another": no ext_proc filter in use in ` + file + " has this cluster"},
		{append([]string{recommendedEnvoy, "--cluster=weir"}, asShipped...), 0, "findings: 0\n"},
		{append([]string{recommendedEnvoy, "--cluster=weir,wier"}, asShipped...), 2, `"wier"`},
		{[]string{recommendedEnvoy, "--queue-ttl=10m", "--secure-serving"}, 1, "tls-to-weir: "},
		{append([]string{recommendedEnvoy, "--grpc-port=19002"}, asShipped...), 1, "9002, and Weir listens at 19002 (--grpc-port)"},
		{append([]string{recommendedEnvoy, "--grpc-port=9002"}, asShipped...), 0, "findings: 0\n"},
		{append([]string{recommendedEnvoy, "--grpc-port=0"}, asShipped...), 0, "findings: 0\n"},
		{[]string{admin.URL}, 1, "response-trailers: "},
		{[]string{admin.URL + "/config_dump?include_eds"}, 1, "response-trailers: "},
		{[]string{admin.URL + "/stats"}, 2, "status 404"},
		{[]string{"http://127.0.0.1:1/"}, 2, "refused"},
		{[]string{"/none"}, 2, "/none"},
		{[]string{"../../config/weir.yaml"}, 2, "is not a configuration of Envoy"},
		{nil, 2, "must be followed by ENVOY"},
		{[]string{"a", "b"}, 2, "only one ENVOY"},
		{[]string{file, "-o", "xml"}, 2, "must be text or json"},
		{[]string{file, "--ignore=trailers"}, 2, "is not a check"},
		{[]string{file, "--none"}, 2, "unknown flag"},
		{[]string{file, "--config-file=/none"}, 2, "--config-file"},
		{[]string{file, "--config-text=a: 1"}, 2, "--config-text"},
		{[]string{file, "--endpoints-file=/none"}, 2, "--endpoints-file"},
		{[]string{file, "--endpoints=engine:8000,10.0.0.1"}, 2, `
--endpoints: "10.0.0.1" has no port`},
		{[]string{"localhost:9901"}, 2, "begins with http://"},
		{[]string{file, "--certificate-secret=a"}, 2, "for --kubernetes only"},
		{[]string{"--kubernetes"}, 2, "needs --pool-name or --endpoint-selector"},
		{[]string{"--help"}, 0, "--ignore"},
	} {
		var stdout, stderr bytes.Buffer
		code := runDoctor(c.args, &stdout, &stderr)
		out := stdout.String() + stderr.String()
		if code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%q: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.says, out)
		}
		if (code == 2) != (stderr.Len() > 0) {
			t.Errorf("%q: exit code %d and stderr %q", c.args, code, &stderr)
		}
	}

	var stdout, stderr bytes.Buffer
	runDoctor(append([]string{"-o", "json", file}, asShipped...), &stdout, &stderr)
	var report struct {
		Schema   int
		Findings []map[string]any
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Schema != 1 || len(report.Findings) != 1 {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	f := report.Findings[0]
	if f["id"] != "response-trailers" || f["line"] != float64(line) || f["change"] != "response_trailer_mode: SEND" || f["why"] == "" {
		t.Errorf("%v, want line %d", f, line)
	}
}

// The endpoints of a bootstrap's cluster come from the file that it names. The error of an unreadable file has its
// name.
func TestDoctorReadsEndpoints(t *testing.T) {
	text, err := os.ReadFile(recommendedEnvoy)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	listed, envoy := filepath.Join(dir, "eds.yaml"), filepath.Join(dir, "envoy.yaml")
	own := strings.Replace(string(text), "path: config/envoy/eds/model_servers.yaml", "path: "+listed, 1)
	if err := os.WriteFile(envoy, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		endpoints string // what the file is a list of; "" for none
		says      []string
	}{
		{"", []string{"not checked: endpoints file " + listed, "no such file", "findings: 0\n"}},
		{"endpoints: [{ address: \"127.0.0.1:8001\" }, { address: \"127.0.0.1:8002\" }, { address: \"127.0.0.1:8003\" }]", []string{
			"endpoint-only-in-weir: ", "at      " + listed + ": resources[0].endpoints[0].lb_endpoints\n", "lacks 127.0.0.1:8004", "findings: 1\n",
		}},
	} {
		var stdout, stderr bytes.Buffer
		if c.endpoints != "" {
			in := filepath.Join(dir, "endpoints.yaml")
			if err := os.WriteFile(in, []byte(c.endpoints), 0o600); err != nil {
				t.Fatal(err)
			}
			if code := runEnvoy([]string{"endpoints", in, listed}, &stdout, &stderr); code != 0 {
				t.Fatal(stderr.String())
			}
		}
		runDoctor(append([]string{envoy}, asShipped...), &stdout, &stderr)
		for _, want := range c.says {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%q: no %q in\n%s%s", c.endpoints, want, &stdout, &stderr)
			}
		}
	}
}

// An engine that is never a destination of Weir's may be missing in Envoy's list.
func TestDoctorOfEnginesThatGetNoRequests(t *testing.T) {
	text, err := os.ReadFile(recommendedEnvoy)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in, listed, envoy := filepath.Join(dir, "endpoints.yaml"), filepath.Join(dir, "eds.yaml"), filepath.Join(dir, "envoy.yaml")
	expect.Replaced(t, envoy, strings.Replace(string(text), "path: config/envoy/eds/model_servers.yaml", "path: "+listed, 1))
	expect.Replaced(t, in, `endpoints: [{ address: "127.0.0.1:8001" }, { address: "127.0.0.1:8002", role: prefill }]`)
	var stdout, stderr bytes.Buffer
	if code := runEnvoy([]string{"endpoints", in, listed}, &stdout, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	runDoctor([]string{envoy, "--secure-serving=false", "--config-file=../../config/weir.yaml", "--endpoints-file=" + in}, &stdout, &stderr)
	if !strings.Contains(stdout.String(), "findings: 0\n") {
		t.Errorf("%s%s", &stdout, &stderr)
	}
}
