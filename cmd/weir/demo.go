package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/scene"
)

const demoAbout = `A noisy tenant keeps %d requests in flight while a quiet one sends %g per second, all of them streamed chat
completions: first through Envoy alone, then with Weir. It starts Envoy, epp and %d simulated model servers on loopback,
ends in a table and a picture, and stops all that it started. Envoy is $ENVOY, or one on PATH, or what make envoy
fetched.
`

// demoOptions are the flags of `weir demo`.
type demoOptions struct {
	epp     string
	out     string // file that ends in .svg
	png     bool
	length  time.Duration
	seed    uint64
	keep    bool
	keepFor time.Duration
}

// picture is the name of the demo's picture where none was given.
const picture = "weir-demo.svg"

// runDemo is `weir demo`.
func runDemo(args []string, stdout, stderr io.Writer) int {
	var options demoOptions
	set := flagSet("weir demo")
	set.StringVar(&options.out, "out", picture, "`file` for the picture, an .svg; or a directory for it")
	set.BoolVar(&options.png, "png", false, "write the picture as a PNG too, beside the SVG")
	set.DurationVar(&options.length, "length", 22*time.Second, "time that each of the two scenes takes, 1s to 5m")
	set.Uint64Var(&options.seed, "seed", 1, "seed of the quiet tenant's arrivals")
	set.BoolVar(&options.keep, "keep", false, "leave Envoy, Weir and the model servers running, and print what to try")
	set.DurationVar(&options.keepFor, "keep-for", 15*time.Minute, "longest time to leave them running")
	set.StringVar(&options.epp, "epp", "", eppFlag)
	about := fmt.Sprintf(demoAbout, noisyWorkers, quietRate, demoServers)
	if code, ok := readFlags(set, about, args, options.check, stdout, stderr); !ok {
		return code
	}
	return onStage("demo", stderr, func(s *scene.Scene) error { return demonstrate(s, options, stdout, stderr) })
}

// check reports every flag that is out of its range. A directory becomes a file in it.
func (o *demoOptions) check() error {
	var problems []error
	if o.length < time.Second || o.length > 5*time.Minute {
		problems = append(problems, fmt.Errorf("--length: %v: must be from 1s to 5m", o.length))
	}
	if o.keepFor <= 0 {
		problems = append(problems, fmt.Errorf("--keep-for: %v: must be above 0s", o.keepFor))
	}
	if info, err := os.Stat(o.out); err == nil && info.IsDir() {
		o.out = filepath.Join(o.out, picture)
	}
	if filepath.Ext(o.out) != ".svg" {
		problems = append(problems, fmt.Errorf("--out: %q: must end in .svg, or be a directory", o.out))
	}
	return errors.Join(problems...)
}

// demonstrate is the demo: two scenes, a table, a picture.
func demonstrate(s *scene.Scene, options demoOptions, stdout, stderr io.Writer) error {
	epp, err := scene.FindEPP(options.epp)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stderr, "Starting Envoy, Weir and the model servers …")
	setting, err := newDemoSetting(s, epp)
	if err != nil {
		return err
	}
	bar := newProgress(stderr, 2)
	defer bar.end()
	without, err := setting.run(s.Context(), setting.direct.URL(), options, bar.begin("without Weir"))
	if err != nil {
		return err
	}
	with, err := setting.run(s.Context(), setting.weir.URL(), options, bar.begin("with Weir"))
	if err != nil {
		return err
	}
	bar.end()

	report := demoReport{without: without, with: with, noisyFrom: noisyBegin(options.length)}
	if err := report.write(stdout); err != nil {
		return err
	}
	figure := report.figure()
	if err := savePicture(figure, options.out); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "The picture is %s\n", options.out)
	if options.png {
		file := strings.TrimSuffix(options.out, ".svg") + ".png"
		if err := figure.Save(file); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(stdout, "The picture is %s\n", file)
	}
	if options.keep {
		return setting.keep(s.Context(), options.keepFor, stdout)
	}
	return nil
}
