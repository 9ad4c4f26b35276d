package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/checkout"
)

// The release and the namespace that the tests install.
const (
	release   = "llama"
	namespace = "inference"
)

// minimal has the values that an installation needs: the pods that serve the model.
const minimal = "pool: { matchLabels: { app: llama } }\n"

// object is a Kubernetes object in YAML's form.
type object map[string]any

func (o object) kind() string { return fmt.Sprint(o["kind"]) }
func (o object) name() string { return o.text("metadata", "name") }
func (o object) key() string  { return o.kind() + "/" + o.name() }

// at returns the content at a path of keys, in which a number is an index of a list. Without content it returns nil.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func (o object) text(path ...any) string {
	s, _ := o.at(path...).(string)
	return s
}

// texts returns the list of texts at a path.
func (o object) texts(path ...any) []string {
	l, _ := o.at(path...).([]any)
	texts := make([]string, len(l))
	for i, v := range l {
		texts[i] = fmt.Sprint(v)
	}
	return texts
}

// objects are the objects of a chart or an overlay, by kind and name.
type objects map[string]object

func (os objects) get(t *testing.T, key string) object {
	t.Helper()
	o, ok := os[key]
	if !ok {
		t.Fatalf("there is no %s; there are %v", key, slices.Sorted(maps.Keys(os)))
	}
	return o
}

// manifests returns all objects as YAML documents, with referenced ones first.
func (os objects) manifests(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(os)) {
		text, err := yaml.Marshal(map[string]any(os[key]))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.String()
}

var rendered sync.Map // texts by values

// render renders the chart with values on top of its own. The test fails if it does not render.
func render(t *testing.T, values ...string) objects {
	t.Helper()
	key := strings.Join(values, "\x00")
	if text, ok := rendered.Load(key); ok {
		return parse(t, text.(string))
	}
	text, err := template(t, values...)
	if err != nil {
		t.Fatal(err)
	}
	rendered.Store(key, text)
	return parse(t, text)
}

// template runs helm template without --debug: the error is a user's.
func template(t *testing.T, values ...string) (string, error) {
	t.Helper()
	return run(t, tool(t, "helm"), append([]string{"template", release, chartDir, "--namespace", namespace}, files(t, values)...)...)
}

// files writes each values text to a file and returns the flags for them.
func files(t *testing.T, values []string) []string {
	t.Helper()
	var flags []string
	for _, text := range values {
		// Not t.TempDir, which has the test's name: Helm splits it at a comma.
		file, err := os.CreateTemp("", "weir-values-*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(file.Name()) })
		_, err = file.WriteString(text)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--values", file.Name())
	}
	return flags
}

// parse returns the objects of YAML documents. Two with the same kind and name are an error.
func parse(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var content map[string]any
		if err := dec.Decode(&content); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("not YAML: %v\n%s", err, text)
		}
		if len(content) == 0 {
			continue
		}
		o := object(content)
		if _, twice := all[o.key()]; twice {
			t.Errorf("%s is there twice", o.key())
		}
		all[o.key()] = o
	}
}

var tools sync.Map // paths by name

// tool returns the path of a tool.
func tool(t *testing.T, name string) string {
	t.Helper()
	if path, ok := tools.Load(name); ok {
		return path.(string)
	}
	path, err := checkout.Tool(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	tools.Store(name, path)
	return path
}

// run runs a program and returns its standard output. The error has its standard error.
func run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	// Without the user's own Helm: repositories, plugins, cluster.
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir(), "KUBECONFIG=/dev/null")
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", filepath.Base(program), err, out.String(), problems.String())
	}
	return out.String(), nil
}
