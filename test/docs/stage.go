package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// Stage is the environment of an act's commands: a directory, and its processes.
type Stage struct {
	t      *testing.T
	dir    string // has bin, config and hack, like the repository
	scene  *scene.Scene
	models []string
	epp    *scene.EPP
	envoy  *envoyrun.Envoy
	count  int    // number of epps started
	eds    string // the file of endpoints that a command has written; ""

	path, variables []string // beside those of this process: directories of commands, and NAME=value
}

// newStage sets up a scene.
func newStage(t *testing.T, begin func(*Stage)) *Stage {
	t.Helper()
	s := &Stage{t: t, dir: t.TempDir(), scene: scene.New(context.Background(), t.TempDir())}
	t.Cleanup(func() {
		if t.Failed() && s.epp != nil {
			t.Logf("epp's log:\n%s", s.log())
		}
		_ = s.scene.Close()
	})
	if err := os.CopyFS(filepath.Join(s.dir, "config"), os.DirFS(root()+"/config")); err != nil { // commands write there
		t.Fatal(err)
	}
	for link, to := range map[string]string{"bin": binaries.Dir(), "hack": root() + "/hack", "charts": root() + "/charts"} {
		if err := os.Symlink(to, filepath.Join(s.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	begin(s)
	return s
}

// T returns the test that the stage is for.
func (s *Stage) T() *testing.T { return s.t }

// Offer gives the commands a directory of programs, and variables of the form NAME=value.
func (s *Stage) Offer(programs string, variables ...string) {
	s.path = append(s.path, programs)
	s.variables = append(s.variables, variables...)
}

// serve starts two model servers.
func (s *Stage) serve(each modelsim.Config) {
	s.t.Helper()
	models, err := s.scene.Models(2, each)
	if err != nil {
		s.t.Fatal(err)
	}
	s.models = models
}

// assign lets weir write a file of endpoints for the next Envoy. If the file follows its source, weir runs until the
// end.
func (s *Stage) assign(at, command string) {
	s.t.Helper()
	m := assigns.FindStringSubmatch(command)
	s.eds = filepath.Join(s.dir, m[2])
	s.run(at, "bin/weir "+m[1], nil)
	if m[3] == "" {
		return
	}
	follower := exec.Command(binaries.Path(binaries.Weir), append(strings.Fields(m[1]), "--follow")...)
	follower.Dir = s.dir
	process, err := child.Start(follower)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = process.Kill() })
}

// startEPP starts epp with flags in a page's form.
func (s *Stage) startEPP(flags string, config ...string) {
	s.t.Helper()
	options := scene.EPPOptions{
		Name: "epp" + strconv.Itoa(s.count), Binary: binaries.Path(binaries.EPP), Endpoints: s.models,
		Config: strings.Join(config, "\n"),
	}
	s.count++
	for flag := range strings.FieldsSeq(flags) {
		if file, ok := strings.CutPrefix(flag, "--config-file="); ok { // all paths are relative to the stage's directory
			flag = "--config-file=" + filepath.Join(s.dir, file)
		}
		if file, ok := strings.CutPrefix(flag, "--endpoints-file="); ok {
			flag, options.Endpoints = "--endpoints-file="+filepath.Join(s.dir, file), nil
		}
		if !strings.HasPrefix(flag, "--endpoints=") && flag != "&" {
			options.Flags = append(options.Flags, s.inward(flag))
		}
	}
	var err error
	if s.epp, err = s.scene.EPP(options); err != nil {
		s.t.Fatal(err)
	}
}

// startEnvoy starts Envoy in front of epp or, without one, of a port without a listener. The configuration is the name
// of a shipped one, or the path of a file in the stage's directory, with a slash in it.
func (s *Stage) startEnvoy(config string) {
	s.t.Helper()
	if strings.Contains(config, "/") {
		config = filepath.Join(s.dir, config)
	}
	weir := "127.0.0.1:1"
	if s.epp != nil {
		weir = s.epp.Address
	}
	name := "envoy" + strconv.Itoa(s.count)
	var err error
	options := envoyrun.Options{Config: config, Weir: weir, ModelServers: s.models}
	if strings.Contains(config, "/") && s.eds != "" {
		options.EndpointsFile = s.eds
	}
	if s.envoy, err = s.scene.Envoy(name, options); err != nil {
		s.t.Fatal(err)
	}
	// Link its standard output to the pages' path of it.
	link := filepath.Join(s.dir, "access.log")
	_ = os.Remove(link)
	if err := os.Symlink(filepath.Join(s.scene.Dir(), name, "access.log"), link); err != nil {
		s.t.Fatal(err)
	}
}

// words returns pairs of a page's text and the test's.
func (s *Stage) words() []string {
	var words []string
	if s.envoy != nil {
		words = append(words, "localhost:8080", s.envoy.Addr(),
			"localhost:9901", strings.TrimPrefix(s.envoy.AdminURL(), "http://"),
			"localhost:9902", strings.TrimPrefix(s.envoy.StatsURL(), "http://"))
	}
	if s.epp != nil {
		words = append(words, "localhost:9090", strings.TrimPrefix(s.epp.MetricsURL, "http://"),
			"localhost:9004", strings.TrimPrefix(s.epp.DebugURL, "http://"),
			"$(pidof epp)", strconv.Itoa(s.epp.Pid()))
	}
	for i, address := range s.models {
		words = append(words, fmt.Sprintf("10.0.0.%d:8000", i+1), address)
	}
	return words
}

// inward translates a page's text for the test.
func (s *Stage) inward(text string) string { return strings.NewReplacer(s.words()...).Replace(text) }

// outward translates the output of commands to the page's form.
func (s *Stage) outward(text string) string {
	var back []string
	for pair := range slices.Chunk(s.words(), 2) {
		if strings.Contains(pair[0], ":") { // only addresses: process IDs stay as they are
			back = append(back, pair[1], pair[0])
		}
	}
	return strings.NewReplacer(back...).Replace(text)
}

// write atomically writes a file for the commands.
func (s *Stage) write(name, text string) {
	s.t.Helper()
	expect.Replaced(s.t, filepath.Join(s.dir, name), text)
}

// log returns epp's log.
func (s *Stage) log() string {
	text, err := os.ReadFile(filepath.Join(s.scene.Dir(), "epp"+strconv.Itoa(s.count-1)+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.outward(string(text))
}

// inLog waits until epp's log has the parts of lines.
func (s *Stage) inLog(at string, want []string) {
	s.t.Helper()
	for i, w := range want {
		want[i] = "…" + w + "…"
	}
	for end := time.Now().Add(settle); ; time.Sleep(50 * time.Millisecond) {
		err := found(s.log(), want)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: epp's log: %v", at, err)
		}
	}
}

// ask sends a chat completion and reads the answer. The status is 0 if there is none.
func (s *Stage) ask(ctx context.Context, headers ...string) int {
	return expect.Post(ctx, s.envoy.URL()+"/v1/chat/completions",
		`{"model":"tiny","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`, headers...).Status
}

// begin sends requests that stay in progress until the end of the test.
func (s *Stage) begin(count int, headers ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, count)
	for range count {
		go func() { s.ask(ctx, headers...); done <- struct{}{} }()
	}
	s.t.Cleanup(func() {
		cancel()
		for range count {
			<-done
		}
	})
}
