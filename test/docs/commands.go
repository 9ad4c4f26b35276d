package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// letOut are the commands that do not run, with the reason. Each key is the beginning of a line on some page.
var letOut = map[string]string{
	"bin/weir load":                "there is no engine on that port; TestLoadHitsWhatTheTraceShares",
	"bin/weir engine":              "it serves until a signal; TestEngineServes",
	"bin/weir doctor --kubernetes": "TestDoctorOfACluster",
	"curl -d":                      "TestFaultsOnDemand",
	"bin/weir tail":                "it waits for requests until a signal; TestTailPage and TestTailCommand",
	"curl -X DELETE localhost:8000/debug/faults": "TestFaultsOnDemand",
	"make build":                      "the test has built the programs",
	"make demo":                       "80 s; cmd/weir tests its parts",
	"make test":                       "this is a part of it",
	"make test-cluster":               "test/docs/cluster is a part of it",
	"make release":                    "minutes; test/release makes one and uses its files",
	"(cd dist":                        "the same",
	"sudo install":                    "the same",
	"crane push":                      "there is no registry",
	"go run -C hack/release . verify": "TestImages",
	"helm upgrade --install llama dist/weir-1.2.3.tgz":          "TestChartNamesTheVersion",
	"helm install llama dist/weir-1.2.3.tgz":                    "TestChartNamesTheVersion",
	"kubectl -n inference rollout status deployment/llama-weir": "no controller makes pods of a Deployment",
	"kubectl rollout status deployment/weir":                    "the same",
	"kubectl rollout status deployment/demo-epp":                "the same",
	"helm test --namespace inference llama":                     "no kubelet runs its pod",
}

// Scenes of the pages about Kubernetes, which another directory of tests sets up.
const (
	InCluster  = "cluster"
	BesideLLMD = "llm-d" // a cluster with a release of llm-d's, demo
)

// Play runs, as parallel subtests, the acts of every page that begin in one of the scenes. It fails unless there is one.
func Play(t *testing.T, scenes map[string]func(*Stage)) {
	played := false
	for _, page := range pages(t) {
		for i, a := range acts(read(t, page)) {
			begin, ok := scenes[a.scene]
			if !ok || !a.runs() {
				continue
			}
			played = true
			t.Run(fmt.Sprintf("%s/%d-%s", filepath.Base(page), i, a.scene), func(t *testing.T) {
				t.Parallel()
				newStage(t, begin).play(page, a)
			})
		}
	}
	if !played {
		t.Error("no page has something to run in these scenes")
	}
}

// runs reports whether the act has a command to run.
func (a act) runs() bool {
	for _, b := range a.blocks {
		if b.kind == "sh" || b.kind == "console" || b.kind == "log" {
			return true
		}
	}
	return false
}

// outside returns the entry of letOut that a command begins with; "" if there is none.
func outside(command string) string {
	for name := range letOut {
		if command == name || strings.HasPrefix(command, name+" ") {
			return name
		}
	}
	return ""
}

var fileName = regexp.MustCompile(`^# ([\w-]+\.yaml)\b`)

// play runs an act.
func (s *Stage) play(page string, a act) {
	for _, b := range a.blocks {
		at := fmt.Sprintf("%s:%d", page, b.line)
		switch b.kind {
		case "yaml":
			if m := fileName.FindStringSubmatch(b.text); m != nil {
				s.write(m[1], s.inward(b.text))
			}
		case "log":
			s.inLog(at, strings.Split(strings.TrimSpace(b.text), "\n"))
		case "sh", "console":
			s.script(page, b)
		}
	}
}

var (
	startsEPP   = regexp.MustCompile(`^(?:bin/)?epp (.*--endpoints=.*?|.*--endpoints-file=\S+ &)(?: &)?$`)
	assigns     = regexp.MustCompile(`^bin/weir (envoy endpoints .*?\S+ (\S+\.yaml))( --follow &)?$`)
	copies      = regexp.MustCompile(`^make (?:build )?my-envoy$`)
	startsEnvoy = regexp.MustCompile(`-c ((?:config/envoy/|my-envoy/)?[\w-]+\.yaml)(?: &)?$`)
)

// script runs the commands of a block. Those without wanted output share one shell.
func (s *Stage) script(page string, b block) {
	var together []string
	first := 0
	flush := func() {
		if len(together) > 0 {
			s.run(fmt.Sprintf("%s:%d", page, first), strings.Join(together, "\n"), nil)
		}
		together = nil
	}
	for _, step := range b.steps() {
		at := fmt.Sprintf("%s:%d", page, step.line)
		command, _, _ := strings.Cut(step.command, "  #")
		command = strings.TrimSpace(command)
		switch {
		case copies.MatchString(command):
			flush()
			s.run(at, "make -s -f "+root()+"/Makefile my-envoy", nil)
		case outside(command) != "":
		case startsEPP.MatchString(command):
			flush()
			s.startEPP(startsEPP.FindStringSubmatch(command)[1])
		case assigns.MatchString(command):
			flush()
			s.assign(at, command)
		case startsEnvoy.MatchString(command):
			flush()
			s.startEnvoy("./" + startsEnvoy.FindStringSubmatch(command)[1])
		case b.kind == "console":
			s.run(at, command, step.want)
		default:
			if len(together) == 0 {
				first = step.line
			}
			together = append(together, command)
		}
	}
	flush()
}

// settle bounds the repetitions of a command that reads metrics, pages or logs, since these lag behind.
const settle = time.Minute

var looks = regexp.MustCompile(`^(?:curl -s localhost:9\d+/|grep |bin/weir status )`)

// run runs a command and checks that its output has the wanted lines.
func (s *Stage) run(at, command string, want []string) {
	s.t.Helper()
	for end := time.Now().Add(settle); ; time.Sleep(50 * time.Millisecond) {
		out, err := s.shell(s.inward(command))
		out = s.outward(out)
		problem := err
		if problem == nil {
			problem = found(out, want)
		}
		if problem == nil {
			return
		}
		if !looks.MatchString(command) || time.Now().After(end) {
			s.t.Fatalf("%s: %s\n%v; the output is\n%s", at, command, problem, out)
		}
	}
}

// shell runs a script. All its processes end with it.
func (s *Stage) shell(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = s.dir
	path := strings.Join(append(slices.Clone(s.path), filepath.Join(s.dir, "bin"), os.Getenv("PATH")), ":")
	cmd.Env = append(append(os.Environ(), "PATH="+path, "NO_PROXY=*", "no_proxy=*"), s.variables...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its processes in the background
	}
	return out.String(), err
}

// found returns an error for the first wanted line that is not in the text, in order.
func found(text string, want []string) error {
	lines := strings.Split(text, "\n")
	for _, w := range want {
		if strings.TrimSpace(w) == "…" || strings.TrimSpace(w) == "" {
			continue
		}
		pattern := pattern(w)
		i := 0
		for i < len(lines) && !pattern.MatchString(blanks(lines[i])) {
			i++
		}
		if i == len(lines) {
			return fmt.Errorf("no line (in its order) is %q", w)
		}
		lines = lines[i+1:]
	}
	return nil
}

// pattern matches a whole line in the pages' form.
func pattern(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(blanks(line)), "…", ".*") + "$")
}

// blanks returns a line with single blanks, and none at its ends.
func blanks(line string) string { return strings.Join(strings.Fields(line), " ") }
