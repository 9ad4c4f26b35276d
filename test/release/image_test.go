package release

import (
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// image is the part of an OCI image's configuration that a runtime uses.
type image struct {
	OS, Architecture, Created string
	Config                    struct {
		User       string
		Entrypoint []string
		Env        []string
		Labels     map[string]string
	}
}

// manifest is an index or a manifest.
type manifest struct {
	Manifests []descriptor
	Config    descriptor
}

type descriptor struct {
	Digest, MediaType string
	Annotations       map[string]string
	Platform          struct{ OS, Architecture string }
}

// blob decodes a blob of the layout.
func blob(t *testing.T, d descriptor, into any) {
	t.Helper()
	file := filepath.Join(dist, "oci", "blobs", strings.Replace(d.Digest, ":", "/", 1))
	if err := json.Unmarshal([]byte(read(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// imageOf returns the configuration of the image for an architecture, along a runtime's path: the tag, the index, the
// manifest.
func imageOf(t *testing.T, arch string) (i image) {
	t.Helper()
	var layout, index, m manifest
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dist, "oci", "index.json"))), &layout); err != nil {
		t.Fatal(err)
	}
	if len(layout.Manifests) != 1 || layout.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout has %+v, want the one index %s", layout.Manifests, version)
	}
	blob(t, layout.Manifests[0], &index)
	at := slices.IndexFunc(index.Manifests, func(d descriptor) bool {
		return d.Platform.OS == "linux" && d.Platform.Architecture == arch
	})
	if len(index.Manifests) != 2 || at < 0 {
		t.Fatalf("the index has %+v, want amd64 and arm64", index.Manifests)
	}
	blob(t, index.Manifests[at], &m)
	blob(t, m.Config, &i)
	return i
}

// unpack validates the layout by go-containerregistry and unpacks an image.
func unpack(t *testing.T, arch string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(filepath.Dir(dist)), "image-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	out := must(t, root, "go", "run", "-C", "hack/release", ".", "verify", "-dist", dist, "-unpack", dir, "-platform", "linux/"+arch)
	if !strings.Contains(out, "are valid") {
		t.Errorf("verify says %q", out)
	}
	return dir
}

// Each image states its platform, its user, its version and its commit, and has the programs of the release.
func TestImages(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		i, dir := imageOf(t, arch), unpack(t, arch)
		if i.OS != "linux" || i.Architecture != arch || i.Config.User != "65532:65532" {
			t.Errorf("%s: the image is for %s/%s and the user %s", arch, i.OS, i.Architecture, i.Config.User)
		}
		labels := i.Config.Labels
		if labels["org.opencontainers.image.version"] != version || labels["org.opencontainers.image.revision"] != commit {
			t.Errorf("%s: the labels are %v", arch, labels)
		}
		if at := must(t, repository, "git", "log", "-1", "--format=%ct", commit); i.Created != utc(t, at) {
			t.Errorf("%s: created %s, the commit at %s", arch, i.Created, utc(t, at))
		}
		for _, program := range []string{"epp", "weir"} {
			path := filepath.Join(dir, "usr", "local", "bin", program)
			checkProgram(t, path, machine)
			must(t, dist, "cmp", path, filepath.Join("linux-"+arch, program))
		}
		if machine != elf.EM_X86_64 {
			t.Logf("the image for %s is not run: its programs' ELF headers say %v", arch, machine)
		}
		checkAuthorities(t, filepath.Join(dir, "etc", "ssl", "certs", "ca-certificates.crt"))
	}
}

// utc returns a time in seconds in JSON's form.
func utc(t *testing.T, seconds string) string {
	t.Helper()
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(n, 0).UTC().Format(time.RFC3339)
}

// checkAuthorities checks the file that Go's crypto/x509 reads: each certificate is an authority's.
func checkAuthorities(t *testing.T, path string) {
	t.Helper()
	known := false
	n := 0
	for rest := []byte(read(t, path)); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !c.IsCA {
			t.Errorf("%s: certificate %d: %v", path, n, err)
			continue
		}
		known = known || c.Subject.CommonName == "ISRG Root X1"
	}
	if n < 100 || !known {
		t.Errorf("%s has %d authorities; that of Let's Encrypt: %v", path, n, known)
	}
}

// The image of amd64, with only its own files and as its own user, serves a request of a real Envoy over TLS, which is
// the default.
func TestImageServesARequest(t *testing.T) {
	model, err := modelsim.Start(modelsim.Instant())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	c := contained(t)
	for _, program := range []string{"epp", "weir"} {
		out, err := c.command("/usr/local/bin/"+program, "--version").CombinedOutput()
		if want := fmt.Sprintf("%s %s (revision %s, ", program, version, commit); err != nil || !strings.HasPrefix(string(out), want) {
			t.Fatalf("%s --version: %v, %s, want %s…", program, err, out, want)
		}
	}
	ports := c.serve("--endpoints=" + model.Address())
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
		Config: "recommended", Weir: fmt.Sprintf("127.0.0.1:%d", ports.GRPC), ModelServers: []string{model.Address()}, Edit: overTLS,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Kill)
	if err := expect.Post(t.Context(), envoy.URL()+"/v1/completions", `{"model":"tiny","prompt":"Hello"}`).Served(); err != nil {
		t.Error(err)
	}
	want := `weir_requests_total{outcome="dispatched"} 1`
	expect.True(t, want, func() bool { return strings.Contains(metrics(t, ports.Metrics), want+"\n") })
}

// overTLS makes Envoy speak TLS to Weir, like the chart.
func overTLS(b envoyrun.Bootstrap) error {
	b.Cluster(envoyrun.WeirCluster)["transport_socket"] = map[string]any{
		"name": "envoy.transport_sockets.tls", "typed_config": map[string]any{
			"@type":              "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
			"common_tls_context": map[string]any{"alpn_protocols": []any{"h2"}},
		},
	}
	return nil
}

// metrics returns those of a port.
func metrics(t *testing.T, port int) string {
	t.Helper()
	return expect.Page(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
}

// container is an unpacked image.
type container struct {
	t        *testing.T
	dir      string
	image    image
	uid, gid int
}

func contained(t *testing.T) container {
	t.Helper()
	c := container{t: t, dir: unpack(t, "amd64"), image: imageOf(t, "amd64")}
	if _, err := fmt.Sscanf(c.image.Config.User, "%d:%d", &c.uid, &c.gid); err != nil {
		t.Fatalf("the image's user %q: %v", c.image.Config.User, err)
	}
	if err := os.Mkdir(filepath.Join(c.dir, "run"), 0o700); err != nil { // for the file of ports; a runtime would mount it
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(c.dir, "run"), 0o777); err != nil {
		t.Fatal(err)
	}
	return c
}

// command returns a command in the image's root as the image's user: without a namespace if this user is root,
// otherwise in a user namespace.
func (c container) command(args ...string) *exec.Cmd {
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: "/", Env: c.image.Config.Env}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.dir, Credential: &syscall.Credential{Uid: uint32(c.uid), Gid: uint32(c.gid)}}
	if me := os.Getuid(); me != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: c.uid, HostID: me, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: c.gid, HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.Credential.NoSetGroups = true
	}
	return cmd
}

// ports are those at which epp listens.
type ports struct{ GRPC, Metrics int }

// serve starts the image's entrypoint, and returns when it listens.
func (c container) serve(flags ...string) (p ports) {
	c.t.Helper()
	args := append(slices.Clone(c.image.Config.Entrypoint), "--bind-address=127.0.0.1", "--grpc-port=0", "--grpc-health-port=0",
		"--metrics-port=0", "--debug-port=0", "--min-drain=0s", "--ports-file=/run/ports.json")
	cmd := c.command(append(args, flags...)...)
	log := child.LogFile(filepath.Join(c.t.TempDir(), "epp.log"))
	process, err := log.Start(cmd)
	if err != nil {
		c.t.Fatalf("chroot as %d: %v (without root, user namespaces must be allowed)", c.uid, err)
	}
	c.t.Cleanup(func() {
		if orderly, err := process.Stop(10 * time.Second); !orderly || err != nil {
			c.t.Errorf("epp did not end: %v\n%s", err, log)
		}
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(c.dir, "run", "ports.json"))
		if err == nil && json.Unmarshal(text, &p) == nil {
			break
		}
		if process.Ended() || time.Now().After(end) {
			c.t.Fatalf("epp does not listen: %v\n%s", err, log)
		}
	}
	c.isThatUser(process.Pid())
	return p
}

// isThatUser checks the user and the root of a process in the kernel's view.
func (c container) isThatUser(pid int) {
	c.t.Helper()
	where, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
	if err != nil || where != c.dir {
		c.t.Errorf("its root is %q (%v), want %s", where, err, c.dir)
	}
	want := c.uid
	if me := os.Getuid(); me != 0 {
		want = me // that is its name outside
	}
	status := read(c.t, fmt.Sprintf("/proc/%d/status", pid))
	if line := fmt.Sprintf("\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", want); !strings.Contains(status, line) {
		c.t.Errorf("its user is another than %d:\n%s", want, status)
	}
}
