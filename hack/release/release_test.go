package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// wantError checks that an error says something; an empty text wants none.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Errorf("%s: %v, want an error with %q", what, err, text)
	}
}

// A version is what semver.org says, without anything that the tag of an image cannot have, and the error names it.
func TestVersions(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "", "0.1.0-rc.1": "", "10.20.30-alpha-1": "",
		"":               "make release VERSION=",
		"v1.2.3":         `"v1.2.3": leave out the v`,
		"1.2":            `"1.2"`,
		"01.2.3":         `"01.2.3"`,
		"1.2.3+linux":    `"1.2.3+linux"`,
		"1.2.3-rc_1":     `"1.2.3-rc_1"`,
		"1.2.3 -X a.b=c": `"1.2.3 -X a.b=c"`,
		"e619319e":       `"e619319e"`,
		"1.2.3\n":        `"1.2.3\n"`,
		"1.2.3-" + strings.Repeat("a", maxVersion): "at most 128",
	} {
		wantError(t, version, checkVersion(version), want)
	}
}

// The chart's and the application's version become the release's, and no other line changes.
func TestNamed(t *testing.T) {
	text := "apiVersion: v2\nname: weir\nversion: 0.1.0\nappVersion: \"0.1.0\"\nkubeVersion: \">=1.30.0-0\"\n"
	got, err := named([]byte(text), "1.2.3")
	if want := strings.ReplaceAll(text, "0.1.0", "1.2.3"); err != nil || string(got) != want {
		t.Errorf("%v, %s, want %s", err, got, want)
	}
	_, err = named([]byte("version: 0.1.0\n"), "1.2.3")
	wantError(t, "without appVersion", err, "0 lines with the key appVersion")
	_, err = named([]byte(text+"version: 1\n"), "1.2.3")
	wantError(t, "with two versions", err, "2 lines with the key version")
}

// A commit is released; a tree with changes, of files that git knows or not, is refused. Ignored files are no change.
func TestCleanCommit(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1700000000 +0200")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := cleanCommit(dir)
	wantError(t, "without git", err, "not a git repository")
	run("init", "--quiet")
	write(".gitignore", "/dist/\n")
	write("a", "1")
	run("add", "--all")
	run("commit", "--quiet", "--message", "first")
	if err := os.Mkdir(filepath.Join(dir, "dist"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("dist/b", "ignored")
	c, err := cleanCommit(dir)
	if err != nil || len(c.hash) != 40 || !c.time.Equal(time.Unix(1700000000, 0)) || c.time.Location() != time.UTC {
		t.Errorf("%+v, %v", c, err)
	}
	write("unknown", "1")
	_, err = cleanCommit(dir)
	wantError(t, "with an unknown file", err, "?? unknown)")
	write("a", "2")
	_, err = cleanCommit(dir)
	wantError(t, "with two changes", err, " M a and others)")
}

// Archives have the order that they were given, and neither owners nor times of this machine.
func TestPack(t *testing.T) {
	at := time.Unix(1700000000, 0)
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := pack([]entry{{name: "z", mode: 0o755}, {name: "z/f", mode: 0o755, source: file}, {name: "a", mode: 0o644, text: []byte("x")}}, at)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil || !z.ModTime.IsZero() || z.Name != "" {
		t.Fatalf("%v, %v", err, z.Header)
	}
	modes := map[string]int64{"z/": 0o755, "z/f": 0o755, "a": 0o644}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(at) || h.Mode != modes[h.Name] {
			t.Errorf("%+v", h)
		}
	}
	if !slices.Equal(names, []string{"z/", "z/f", "a"}) {
		t.Errorf("the archive has %v", names)
	}
}

// A directory with anything but a release is not replaced.
func TestReplaceable(t *testing.T) {
	dir := t.TempDir()
	wantError(t, "nothing", replaceable(filepath.Join(dir, "none")), "")
	wantError(t, "an empty directory", replaceable(dir), "")
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "other files", replaceable(dir), "is no release")
	r := release{dir: dir}
	if err := r.sums(); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a release", replaceable(dir), "")
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a release with another file", replaceable(dir), "notes.txt")
}

// small is a release whose programs are a few bytes.
func small(t *testing.T) release {
	t.Helper()
	r := release{version: "1.2.3", commit: commit{hash: strings.Repeat("a", 40), time: time.Unix(1700000000, 0)}, dir: t.TempDir()}
	for _, p := range platforms {
		if err := os.Mkdir(filepath.Join(r.dir, p.String()), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, program := range programs {
			if err := os.WriteFile(r.program(p, program), []byte(program+" for "+p.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(r.image(), r.sums()); err != nil {
		t.Fatal(err)
	}
	return r
}

// An image is unpacked with its files and modes; a changed file is noticed by its sum, and a changed blob of the layout also
// where its sum was changed with it.
func TestVerify(t *testing.T) {
	r := small(t)
	defer syscall.Umask(syscall.Umask(0o077)) // modes are the image's all the same
	dir := filepath.Join(t.TempDir(), "image")
	if err := verify(r.dir, dir, "linux/arm64", io.Discard); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "usr", "local", "bin", "weir")
	text, err := os.ReadFile(program)
	if err != nil || string(text) != "weir for linux-arm64" {
		t.Errorf("%s: %v", text, err)
	}
	if info, err := os.Stat(program); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	wantError(t, "another platform", verify(r.dir, dir, "linux/s390x", io.Discard), "0 images for linux/s390x")

	blobs, err := filepath.Glob(filepath.Join(r.dir, "oci", "blobs", "sha256", "*"))
	if err != nil || len(blobs) != 8 { // three layers, and a configuration, a manifest for each platform, and the index
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	for _, blob := range blobs {
		text, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(text)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(blob, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, "a changed blob", verify(r.dir, "", "", io.Discard), "has other files")
		if err := r.sums(); err != nil {
			t.Fatal(err)
		}
		wantError(t, "a changed blob with its sum", verify(r.dir, "", "", io.Discard), "the layout")
		if err := os.WriteFile(blob, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.sums(); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, "the same again", verify(r.dir, "", "", io.Discard), "")

	if _, err := layout.Write(filepath.Join(r.dir, "oci"), empty.Index); err != nil {
		t.Fatal(err)
	}
	if err := r.sums(); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a layout that names no index", verify(r.dir, "", "", io.Discard), "0 indexes, want one")
}

// Only directories and files are unpacked, and none of them elsewhere.
func TestUnpackEntry(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	link := &tar.Header{Name: "etc/link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}
	wantError(t, "a link", unpackEntry(root, link, nil), "type '2'")
	wantError(t, "elsewhere", unpackEntry(root, &tar.Header{Name: "../x", Typeflag: tar.TypeReg, Mode: 0o600}, strings.NewReader("")), "escapes")
}

// The arguments are those that the package names.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "want make or verify"},
		{"build", `"build": want make or verify`},
		{"make -version v1", `"v1"`},
		{"make 1.2.3", `unexpected argument "1.2.3"`},
		{"verify -dist /nowhere", "/nowhere/SHA256SUMS"},
	} {
		wantError(t, c.args, run(strings.Fields(c.args), io.Discard), c.want)
	}
}

// The file of authorities has every root that Mozilla trusts without a condition, and no other, since the file cannot state conditions.
func TestCertificates(t *testing.T) {
	have := certificates()
	for root := range bundle.Roots() {
		in := bytes.Contains(have, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		if in != (root.Constraint == nil) {
			t.Errorf("a root with the condition %t is in the file: %t", root.Constraint != nil, in)
		}
	}
}
