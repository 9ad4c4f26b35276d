package release

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs are those of a release by their path.
var programs = map[string]elf.Machine{
	"linux-amd64/epp": elf.EM_X86_64, "linux-amd64/weir": elf.EM_X86_64,
	"linux-arm64/epp": elf.EM_AARCH64, "linux-arm64/weir": elf.EM_AARCH64,
}

// Two clones in two folders give the same bytes. sha256sum, an operator's command, agrees with the sums, and every file
// is among them.
func TestTwoFoldersGiveTheSameBytes(t *testing.T) {
	sums := read(t, filepath.Join(dist, "SHA256SUMS"))
	if other := read(t, filepath.Join(again, "SHA256SUMS")); sums != other {
		t.Errorf("the sums differ:\n%s\n%s", sums, other)
	}
	must(t, dist, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	must(t, again, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	var files []string
	err := fs.WalkDir(os.DirFS(dist), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && name != "SHA256SUMS" {
			files = append(files, name)
			if !strings.Contains(sums, "  "+name+"\n") {
				t.Errorf("%s has no sum", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Collect(maps.Keys(programs))
	for _, platform := range []string{"linux-amd64", "linux-arm64"} {
		want = append(want, fmt.Sprintf("weir-%s-%s.tar.gz", version, platform),
			fmt.Sprintf("epp-%s-%s.cdx.json", version, platform), fmt.Sprintf("weir-%s-%s.cdx.json", version, platform))
	}
	for _, name := range append(want, "oci/index.json", "oci/oci-layout", "weir-"+version+".tgz") {
		if !slices.Contains(files, name) {
			t.Errorf("there is no %s in %v", name, files)
		}
	}
}

// Programs are static, for their machine, with the version and the commit. This machine cannot run those for arm64, so
// the test reads their headers.
func TestPrograms(t *testing.T) {
	for name, machine := range programs {
		path := filepath.Join(dist, name)
		checkProgram(t, path, machine)
		if machine != elf.EM_X86_64 {
			t.Logf("%s is not run: its ELF header says %v", name, machine)
			continue
		}
		want := fmt.Sprintf("%s %s (revision %s, ", filepath.Base(name), version, commit)
		if got := must(t, dist, path, "--version"); !strings.HasPrefix(got, want) {
			t.Errorf("%s --version: %q, want %q…", name, got, want)
		}
	}
	// The archive has the same programs, and the licence.
	for _, platform := range []string{"linux-amd64", "linux-arm64"} {
		name := "weir-" + version + "-" + platform
		dir := t.TempDir()
		must(t, dir, "tar", "-xzf", filepath.Join(dist, name+".tar.gz"))
		must(t, dir, "diff", "-r", "-x", "LICENSE", name, filepath.Join(dist, platform))
		must(t, dir, "diff", filepath.Join(name, "LICENSE"), filepath.Join(root, "LICENSE"))
	}
}

// checkProgram checks an ELF header: a program for that machine, without a dynamic linker.
func checkProgram(t *testing.T, path string, machine elf.Machine) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if file.Machine != machine || file.Class != elf.ELFCLASS64 || file.Type != elf.ET_EXEC {
		t.Errorf("%s: %v, %v, %v, want an executable for %v", path, file.Machine, file.Class, file.Type, machine)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static", path)
		}
	}
	for _, directory := range []string{filepath.Dir(dist), filepath.Dir(again)} {
		if strings.Contains(read(t, path), directory+"/") {
			t.Errorf("%s has the path %s", path, directory)
		}
	}
}

// bill is the checked part of a CycloneDX file.
type bill struct {
	BOMFormat, SpecVersion, SerialNumber string
	Metadata                             struct{ Component part }
	Components                           []part
}

type part struct {
	Name, Version, PURL string
	Hashes              []struct{ Alg, Content string }
}

// A program's bill of materials has exactly the modules that `go list` links for its platform, with the versions of
// go.mod, and the sum of that program.
func TestBillsOfMaterials(t *testing.T) {
	sums := read(t, filepath.Join(dist, "SHA256SUMS"))
	for name := range programs {
		platform, program := filepath.Split(name)
		platform = strings.TrimSuffix(platform, "/")
		var b bill
		if err := json.Unmarshal([]byte(read(t, filepath.Join(dist, program+"-"+version+"-"+platform+".cdx.json"))), &b); err != nil {
			t.Fatal(err)
		}
		if b.BOMFormat != "CycloneDX" || b.SpecVersion == "" || !strings.HasPrefix(b.SerialNumber, "urn:uuid:") {
			t.Errorf("%s: %s %s %s", name, b.BOMFormat, b.SpecVersion, b.SerialNumber)
		}
		c := b.Metadata.Component
		if c.Name != program || c.Version != version || len(c.Hashes) != 1 || !strings.Contains(sums, c.Hashes[0].Content+"  "+name+"\n") {
			t.Errorf("%s: the component is %+v", name, c)
		}
		var have []string
		for _, p := range b.Components {
			have = append(have, p.Name+"@"+p.Version)
			if p.PURL != "pkg:golang/"+p.Name+"@"+strings.ReplaceAll(p.Version, "+", "%2B") {
				t.Errorf("%s: %s has the URL %s", name, p.Name, p.PURL)
			}
		}
		want := linked(t, platform, program)
		info, err := buildinfo.ReadFile(filepath.Join(dist, name))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, "std@"+strings.TrimPrefix(info.GoVersion, "go"))
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s has the modules\n%v\nwant\n%v", name, have, want)
		}
	}
}

// linked returns a program's modules by go list, without its own.
func linked(t *testing.T, platform, program string) []string {
	t.Helper()
	_, arch, _ := strings.Cut(platform, "-")
	list := must(t, root, "env", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "go", "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/"+program)
	modules := strings.Fields(list)
	slices.Sort(modules)
	return slices.Compact(modules)
}
