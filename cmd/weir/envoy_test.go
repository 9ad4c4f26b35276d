package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
)

const (
	twoEngines   = "endpoints:\n- address: \"10.0.0.1:8000\"\n  slots: 4\n- address: \"[2001:db8::2]:8000\"\n"
	threeEngines = "endpoints: [{ address: \"10.0.0.1:8000\" }, { address: \"10.0.0.2:8000\" }, { address: \"10.0.0.3:8000\" }]\n"
)

// The file of Envoy's endpoints is written once. Wrong arguments give exit code 2. A broken file gives 1 and leaves
// Envoy's file unchanged.
func TestEnvoyEndpoints(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "endpoints.yaml"), filepath.Join(dir, "eds.yaml")
	expect.Replaced(t, in, twoEngines)
	bad, large, roles := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "large.yaml"), filepath.Join(dir, "roles.yaml")
	expect.Replaced(t, bad, "endpoints:\n- address: \"10.0.0.1:8000\"\n- { address: \"engine:8000\", slots: -1 }\n")
	expect.Replaced(t, roles, `endpoints: [{ address: "10.0.0.1:8000" }, { address: "10.0.0.2:8000", role: decode },
  { address: "10.0.0.3:8000", role: prefill }, { address: "10.0.0.4:8000", role: encode }]`)
	expect.Replaced(t, large, "# "+strings.Repeat("x", 1<<20)+"\nendpoints: []\n")
	if err := os.Link(in, filepath.Join(dir, "same.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"endpoints", in, out}, 0, out + ": endpoints: 2, draining: 0\n"},
		{[]string{"endpoints", in, out, "--cluster=engines"}, 0, "endpoints: 2"},
		{[]string{"endpoints", bad, out}, 1, `endpoints[1].address: "engine:8000" is a hostname`},
		{[]string{"endpoints", bad, out}, 1, "weir envoy: endpoints[1].slots: -1 is not a whole number from 0"},
		{[]string{"endpoints", bad, out, "--follow"}, 1, "bad.yaml: endpoints[1].address"},
		{[]string{"endpoints", large, out}, 1, "is larger than 1048576 bytes"},
		{[]string{"endpoints", filepath.Join(dir, "none"), out}, 1, "no such file"},
		{[]string{"endpoints", in, filepath.Join(dir, "none", "eds.yaml")}, 1, "no such file"},
		{[]string{"endpoints", in, filepath.Join(dir, "none", "eds.yaml"), "--follow"}, 1, "none/eds.yaml: cannot create a file in its directory: no such file"},
		{[]string{"endpoints", roles, filepath.Join(dir, "roles.json")}, 0, "endpoints: 2, draining: 0"},
		{nil, 2, "must be followed by endpoints"},
		{[]string{"endpoints", in, filepath.Join(dir, "eds.txt")}, 2, `eds.txt": must end in .yaml, .yml or .json`},
		{[]string{"endpoints", in, filepath.Join(dir, "same.yaml")}, 2, `same.yaml": is IN`},
		{[]string{"endpoints", "-", out, "--follow"}, 2, "standard input cannot be followed"},
		{[]string{"endpoints", in, out, "--grace=-1s"}, 2, "--grace: -1s: must be from 0s to 1h"},
		{[]string{"endpoints", in, out, "--grace=61m"}, 2, "--grace: 1h1m0s: must be from 0s to 1h"},
		{[]string{"endpoints", in, out, "--grace=soon"}, 2, "--grace"},
		{[]string{"endpoints", in, out, "--cluster="}, 2, "--cluster: is empty"},
		{[]string{"endpoints", in, out, "--folow"}, 2, "--folow"},
		{[]string{"--help"}, 0, "--grace"},
		{[]string{"endpoints", "--help"}, 0, "--grace"},
	} {
		var stdout, stderr bytes.Buffer
		code := runEnvoy(c.args, &stdout, &stderr)
		if all := stdout.String() + stderr.String(); code != c.code || !strings.Contains(all, c.says) {
			t.Errorf("%q: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.says, all)
		}
		if (code == 0) != (stderr.Len() == 0) {
			t.Errorf("%q: exit code %d and stderr %q", c.args, code, &stderr)
		}
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), `"cluster_name": "engines"`) ||
		!strings.Contains(string(text), `{"address": "2001:db8::2", "port_value": 8000}`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// With --follow, Envoy's file follows the endpoints file until the end, and keeps the last good endpoints.
func TestEnvoyEndpointsFollows(t *testing.T) {
	dir := t.TempDir()
	f := envoyFlags{in: filepath.Join(dir, "endpoints.yaml"), out: filepath.Join(dir, "eds.json"), cluster: "model_servers", follow: true, grace: time.Hour}
	expect.Replaced(t, f.in, twoEngines)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr output
	done := make(chan error, 1)
	go func() { done <- f.run(ctx, &stdout, &stderr) }()
	stdout.waitFor(t, "endpoints: 2, draining: 0")
	expect.Replaced(t, f.in, threeEngines)
	stdout.waitFor(t, "endpoints: 3, draining: 1")
	good, err := os.ReadFile(f.out)
	if err != nil {
		t.Fatal(err)
	}
	expect.Replaced(t, f.in, "endpoints: [{ address: \"10.0.0.1:8000\", slot: 1 }]\n")
	stderr.waitFor(t, f.in+": endpoints[0].slot: unknown field")
	stderr.waitFor(t, f.out+" stays as it is")
	if now, err := os.ReadFile(f.out); err != nil || !bytes.Equal(now, good) {
		t.Errorf("a broken list has changed the file: %v\n%s", err, now)
	}
	if err := os.Remove(f.in); err != nil {
		t.Fatal(err)
	}
	stderr.waitFor(t, "no such file")
	expect.Replaced(t, f.in, "endpoints: [{ address: \"10.0.0.3:8000\" }]\n")
	stdout.waitFor(t, "endpoints: 1, draining: 3")
	expect.Replaced(t, f.in, "endpoints: []\n")
	stdout.waitFor(t, "endpoints: 0, draining: 4")

	// As the kubelet mounts a ConfigMap: a link to a link to a directory, which is swapped.
	mounted := filepath.Join(dir, "mounted")
	for name, text := range map[string]string{"1": "endpoints: [{ address: \"10.0.0.4:8000\" }]\n", "2": "endpoints: [{ address: \"10.0.0.5:8000\" }]\n"} {
		if err := os.MkdirAll(filepath.Join(mounted, name), 0o700); err != nil {
			t.Fatal(err)
		}
		expect.Replaced(t, filepath.Join(mounted, name, "endpoints.yaml"), text)
	}
	link := func(to, path string) {
		t.Helper()
		if err := errors.Join(os.Symlink(to, path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	link("1", filepath.Join(mounted, "..data"))
	link(filepath.Join(mounted, "..data", "endpoints.yaml"), f.in)
	stdout.waitFor(t, "endpoints: 1, draining: 4")
	link("2", filepath.Join(mounted, "..data"))
	stdout.waitFor(t, "endpoints: 1, draining: 5")

	// A file half written in place.
	if err := os.WriteFile(f.in, []byte("endpoints: [{ address: \"10.0."), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr.waitFor(t, f.in+": reading YAML")

	// A signal restores a deleted file, although the list is broken.
	if err := os.Remove(f.out); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	stderr.waitFor(t, "weir envoy: reading the files again\n")
	stdout.waitFor(t, "draining: 5\n"+f.out+": endpoints: 1, draining: 5\n")
	if _, err := os.Stat(f.out); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	want := ""
	for _, list := range []string{
		"2, draining: 0", "3, draining: 1", "1, draining: 3", "0, draining: 4", "1, draining: 4", "1, draining: 5", "1, draining: 5",
	} {
		want += f.out + ": endpoints: " + list + "\n"
	}
	if got := stdout.String(); got != want {
		t.Errorf("it says\n%s, want\n%s", got, want)
	}
}
