package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/scene"
)

const demoAbout = `First a noisy tenant keeps %d requests in flight while a quiet one sends %g per second, all of them streamed chat
completions: through Envoy alone, and then with Weir. Then bulk work keeps %d requests in flight while interactive requests
arrive: all alike, and then each with its class, behind the first-token gate. The demo starts Envoy, epp and %d simulated
model servers on loopback, prints a table, writes two pictures, and stops everything that it has started. It uses the Envoy
at $ENVOY, on PATH, or fetched by make envoy.
`

// demoOptions are the flags of `weir demo`.
type demoOptions struct {
	epp     string
	out     string // a file that ends in .svg
	png     bool
	length  time.Duration
	seed    uint64
	keep    bool
	keepFor time.Duration
}

// picture is the default name of the demo's picture; the picture about priority adds the suffix before .svg.
const (
	picture        = "weir-demo.svg"
	prioritySuffix = "-priority"
)

// runDemo is `weir demo`.
func runDemo(args []string, stdout, stderr io.Writer) int {
	var options demoOptions
	set := flagSet("weir demo")
	set.StringVar(&options.out, "out", picture, "`file` for the picture, an .svg, or a directory for it; the picture about priority has a similar name")
	set.BoolVar(&options.png, "png", false, "also write the pictures as PNG")
	set.DurationVar(&options.length, "length", 15*time.Second, "time that each of the four scenes takes, 1s to 5m")
	set.Uint64Var(&options.seed, "seed", 1, "seed of the arrivals, except the flood's")
	set.BoolVar(&options.keep, "keep", false, "keep Envoy, Weir and the model servers running, and print commands to try")
	set.DurationVar(&options.keepFor, "keep-for", 15*time.Minute, "longest time to keep them running")
	set.StringVar(&options.epp, "epp", "", eppFlag)
	about := fmt.Sprintf(demoAbout, noisyWorkers, quietRate, bulkWorkers, demoServers)
	if code, ok := readFlags(set, about, args, options.check, stdout, stderr); !ok {
		return code
	}
	return onStage("demo", stderr, func(s *scene.Scene) error { return demonstrate(s, options, stdout, stderr) })
}

// check reports every flag out of its range. If --out is a directory, it adds a file name.
func (o *demoOptions) check() error {
	var ps arguments.Problems
	arguments.Within(&ps, "length", o.length, time.Second, 5*time.Minute)
	if o.keepFor <= 0 {
		ps.Add("keep-for", "%v: must be above 0s", o.keepFor)
	}
	if info, err := os.Stat(o.out); err == nil && info.IsDir() {
		o.out = filepath.Join(o.out, picture)
	}
	if filepath.Ext(o.out) != ".svg" {
		ps.Add("out", "%q: must end in .svg, or be a directory", o.out)
	}
	return ps.Err()
}

// demonstrate runs the demo: four scenes, a table, two pictures.
func demonstrate(s *scene.Scene, options demoOptions, stdout, stderr io.Writer) error {
	epp, err := scene.FindEPP(options.epp)
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(options.out, ".svg")
	if err := checkWritable([]string{base, base + prioritySuffix}, options.png); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stderr, "Starting Envoy, Weir and the model servers …")
	setting, err := newDemoSetting(s, epp)
	if err != nil {
		return err
	}
	report := demoReport{length: options.length}
	report.fairness, report.priority = setting.scenes(options)
	scenes := []*demoScene{report.fairness.without, report.fairness.with, report.priority.without, report.priority.with}
	bar := newProgress(stderr, len(scenes))
	defer bar.end()
	for _, part := range scenes {
		if err := part.play(s.Context(), options.length, bar.begin(part.name)); err != nil {
			return err
		}
	}
	bar.end()
	if report.preempted, err = setting.preempted(s.Context()); err != nil {
		return err
	}

	if err := report.write(stdout); err != nil {
		return err
	}
	if err := savePictures(report.fairnessFigure(), "the noisy tenant and the quiet one", base, options.png, stdout); err != nil {
		return err
	}
	err = savePictures(report.priorityFigure(), "bulk work and interactive requests", base+prioritySuffix, options.png, stdout)
	if err != nil {
		return err
	}
	if options.keep {
		return setting.keep(s.Context(), options.keepFor, stdout)
	}
	return nil
}
