package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/weir-epp/weir/internal/loadgen"
)

// progress shows a command's progress over several parts of equal length: as a bar on a terminal, otherwise with a line
// per part.
type progress struct {
	out   io.Writer
	bar   *progressbar.ProgressBar // nil without a terminal
	parts int
	part  int // parts begun
}

// partSteps is the resolution of a part.
const partSteps = 1000

func newProgress(out io.Writer, parts int) *progress {
	p := &progress{out: out, parts: parts}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions(
			parts*partSteps, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(36),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetTheme(progressbar.Theme{
				Saucer: "█", SaucerHead: "█", SaucerPadding: "░", BarStart: "", BarEnd: "",
			}),
		)
	}
	return p
}

// begin announces the next part and returns the function that reports its progress.
func (p *progress) begin(what string) loadgen.Progress {
	p.part++
	if p.bar == nil {
		_, _ = fmt.Fprintf(p.out, "%d of %d: %s\n", p.part, p.parts, what)
		return nil
	}
	base := (p.part - 1) * partSteps
	p.bar.Describe(what)
	return func(done, total int) { _ = p.bar.Set(base + done*partSteps/max(total, 1)) }
}

// end removes the bar, even if some parts are not done. Further calls do nothing.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
