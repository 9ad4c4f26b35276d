package main

import (
	"encoding/xml"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/loadgen"
)

// The demo in miniature: the scenes, the table and the pictures. The processes that it leaves running answer requests,
// and Ctrl-C ends all of them.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	c := begin(t, "demo", "--length=3s", "--png", "--out="+dir, "--keep", eppBuilt())
	c.stdout.waitFor(t, os.Args[0]+" replay ")
	text := c.stdout.String()
	for _, want := range []string{
		sceneWithout, sceneWith, sceneNoPriority, scenePriority, quietTenant, noisyTenant, interactiveTenant, bulkTenant,
		"The picture of the noisy tenant and the quiet one is " + filepath.Join(dir, "weir-demo.svg") + "\n",
		"The picture of bulk work and interactive requests is " + filepath.Join(dir, "weir-demo-priority.png") + "\n",
		"The price: the bulk requests' p95 time to first token is ",
		"TTFT p50", "the quiet one's median time to first token", "the interactive requests' median time to first token",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q was not written:\n%s", want, text)
		}
	}
	if preempted := regexp.MustCompile(`(?m)^(\d+) times a bulk request was preempted`).FindStringSubmatch(text); preempted == nil {
		t.Errorf("nothing about preemption:\n%s", text)
	} else if preempted[1] == "0" {
		t.Errorf("no request was preempted:\n%s", text)
	}
	for _, name := range []string{"weir-demo", "weir-demo-priority"} {
		checkPictures(t, filepath.Join(dir, name))
	}

	url := regexp.MustCompile(`curl -i (http://\S+)`).FindStringSubmatch(text)
	if url == nil {
		t.Fatalf("no line to try:\n%s", text)
	}
	answer, err := http.Post(url[1], "application/json", strings.NewReader(strings.Replace(string(demoBodies[0]), "true", "false", 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 || !strings.Contains(string(body), "choices") {
		t.Errorf("%s: %s", answer.Status, body)
	}
	replayDemo(t, text)
	c.interrupt(t)
	c.ends(t, 0)
}

// replayDemo replays the recording of the demo's epp.
func replayDemo(t *testing.T, text string) {
	t.Helper()
	url := regexp.MustCompile(`http://\S+/debug/recording`).FindString(text)
	file := filepath.Join(t.TempDir(), "weir.recording")
	if err := os.WriteFile(file, []byte(expect.Page(t, url)), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if code := run([]string{"replay", file}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "verdicts are as recorded") {
		t.Errorf("weir replay: %d\n%s%s", code, stdout.String(), stderr.String())
	}
	if code := run([]string{"explain", url, "--request", "1"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "Request 1 arrived") {
		t.Errorf("weir explain: %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

// The report states the cost of priority for the bulk requests and the gain for the others.
func TestDemoPrice(t *testing.T) {
	played := func(name string, waits ...time.Duration) *demoScene {
		report := &loadgen.Report{Length: time.Minute, Tracks: []loadgen.Track{{Tenant: bulkTenant}}}
		for _, wait := range waits {
			report.Tracks[0].Results = append(report.Tracks[0].Results, loadgen.Result{
				Tenant: bulkTenant, Attempts: 1, Status: 200, FirstData: wait, Total: wait + time.Second,
			})
		}
		return &demoScene{name: name, report: report}
	}
	const s = time.Second
	for _, test := range []struct {
		without, with *demoScene
		want          string
	}{
		{
			played(sceneNoPriority, s, 2*s), played(scenePriority, 500*time.Millisecond, 5*s),
			"The price: the bulk requests' p95 time to first token is 2.00 s without priority and 5.00 s with it (2.5 times as long).",
		},
		{
			played(sceneNoPriority, s), played(scenePriority),
			"The price for the bulk requests is unknown: the run was too short.",
		},
	} {
		report := demoReport{priority: pair{without: test.without, with: test.with}}
		if got := report.price(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	slower := pair{steady: bulkTenant, without: played(sceneNoPriority, s, s), with: played(scenePriority, 2*s, 2*s)}
	if got, want := slower.verdict("the", "priority"), "the median time to first token is 1.00 s without priority and 2.00 s with it (no less"; !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// checkPictures checks the SVG and the PNG with that name.
func checkPictures(t *testing.T, name string) {
	t.Helper()
	svg, err := os.ReadFile(name + ".svg")
	if err != nil || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("no picture: %v", err)
	}
	if !strings.Contains(string(svg), "Arial") || strings.Contains(string(svg), "@font-face") {
		t.Error("the picture has fonts within")
	}
	file, err := os.Open(name + ".png")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err = png.Decode(file); err != nil {
		t.Error(err)
	}
}

// Ctrl-C during the demo ends everything, and the command fails.
func TestDemoInterrupted(t *testing.T) {
	c := begin(t, "demo", "--length=1m", "--out="+t.TempDir(), eppBuilt())
	c.stderr.waitFor(t, "1 of 4")
	c.interrupt(t)
	c.ends(t, 1)
	if !strings.Contains(c.stderr.String(), "interrupted") {
		t.Error(c.stderr.String())
	}
}

// If a part does not start, everything else stops. The logs stay, and the output has their directory.
func TestDemoKeepsLogsOfAFailure(t *testing.T) {
	script := filepath.Join(t.TempDir(), "epp")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho out of sorts\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := begin(t, "demo", "--length=1s", "--out="+t.TempDir(), "--epp="+script)
	c.ends(t, 1)
	for _, want := range []string{"epp ended at its start", "out of sorts", "The logs are kept in " + c.temporary} {
		if !strings.Contains(c.stderr.String(), want) {
			t.Errorf("%q was not written:\n%s", want, c.stderr.String())
		}
	}
}

// An unwritable picture is an error before anything starts.
func TestDemoPictureCannotBeWritten(t *testing.T) {
	c := begin(t, "demo", "--length=5m", "--out="+filepath.Join(t.TempDir(), "nope", "x.svg"), eppBuilt())
	c.ends(t, 1)
	if text := c.stderr.String(); !strings.Contains(text, "nope/x.svg: no such file or directory") || strings.Contains(text, "Starting") {
		t.Error(text)
	}
}

// The check covers every file to be written, leaves no file behind, and changes no existing one.
func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if err := os.WriteFile(one+".svg", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkWritable([]string{one, two}, true); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(one + ".svg"); string(text) != "old" {
		t.Errorf("the picture of before: %q, %v", text, err)
	}
	if files, err := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	if err := os.Mkdir(two+".png", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkWritable([]string{one, two}, false); err != nil {
		t.Error(err)
	}
	if err := checkWritable([]string{one, two}, true); err == nil || !strings.Contains(err.Error(), "two.png: is a directory") {
		t.Errorf("a directory in its place: %v", err)
	}
}

func TestArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		"demo --length=0s":                 "--length: 0s: must be from 1s to 5m",
		"demo --length=15":                 `weir demo: --length: "15": must be a duration with a unit`,
		"demo --seed=-1":                   `--seed: "-1": must be a whole number from 0 to`,
		"demo --png=maybe":                 `--png: "maybe": must be true or false`,
		"bench flood --samples=many":       `--samples: "many": must be a whole number`,
		"bench flood --jitter=some":        `--jitter: "some": must be a number`,
		"bench proxy --concurrency=1,":     `--concurrency: "1,": must be whole numbers, separated by commas`,
		"demo --out=picture.gif":           "must end in .svg",
		"demo --keep-for=0s":               "--keep-for: 0s: must be above 0s",
		"demo now":                         `"now": only flags are allowed`,
		"bench":                            "must be followed by flood, proxy, usage or affinity",
		"bench speed":                      `"speed": must be flood, proxy, usage or affinity`,
		"bench flood --samples=0":          "--samples: 0: must be from 1 to 100000",
		"bench flood --warmup=1ms":         "--warmup: 1ms: must be from 100ms to 1m",
		"bench flood --spacing=1h":         "--spacing: 1h: must be from 0s to 1s",
		"bench flood --tie-break=random":   `--tie-break: "random": must be newcomer or arrival`,
		"bench flood --jitter=NaN":         "--jitter: NaN: must be from 0 to 0.5",
		"bench proxy --rounds=0":           "--rounds: 0: must be from 1 to 1000",
		"bench proxy --length=1h":          "--length: 1h: must be from 100ms to 1m",
		"bench proxy --concurrency=8,8":    "--concurrency: 8: must be from 1 to 1000, and each once",
		"bench proxy --concurrency=100000": "--concurrency: 100000: must be",
		"bench usage --rounds=0":           "--rounds: 0: must be from 1 to 1000",
		"bench usage --length=1h":          "--length: 1h: must be from 100ms to 1m",
		"noop-processor":                   "want a file",
		"model-servers 0 f":                "want a count",
	} {
		var stdout, stderr output
		if code := run(strings.Fields(arguments), &stdout, &stderr); code != 2 {
			t.Errorf("%s: exit code %d, want 2", arguments, code)
		}
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: %q is not in stderr:\n%s", arguments, want, stderr.String())
		}
		if lines := strings.Count(stderr.String(), "\n"); strings.Contains(arguments, "--") && lines > 2 {
			t.Errorf("%s: the error scrolls away before %d lines", arguments, lines)
		}
	}
	for _, arguments := range []string{"demo --help", "bench --help", "bench flood -h", "bench proxy --help", "bench usage --help"} {
		var stdout, stderr output
		if code := run(strings.Fields(arguments), &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "Usage:") {
			t.Errorf("%s: exit code %d, want 0 and the usage\n%s", arguments, code, stdout.String())
		}
	}
	var stdout output
	if run([]string{"help"}, &stdout, io.Discard); strings.Contains(stdout.String(), "noop") {
		t.Errorf("help lists an internal command:\n%s", stdout.String())
	}
}
