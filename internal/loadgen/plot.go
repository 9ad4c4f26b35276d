package loadgen

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weir-epp/weir/internal/shown"
)

// Figure is a picture of TTFT over time by tenant, with one panel per report, side by side on one latency axis. Points
// are requests answered with 2xx, lines their medians over time, and ticks at the bottom the other requests; the text
// beside a panel covers the whole run after the warm-up.
type Figure struct {
	Title, Subtitle string
	// Panels are drawn from left to right; two read best.
	Panels []Panel
	// Spans are shaded in every panel.
	Spans []Span
}

// Panel is one report of a [Figure].
type Panel struct {
	Title  string
	Report *Report
}

// Span is a named stretch of time, such as "batch sends"; From and To are from the start of the run.
type Span struct {
	Label    string
	From, To time.Duration
}

// The dimensions of a figure, in points of 1/72 inch. At 192 dots per inch a picture has twice the pixels shown in a
// README.
const (
	figureWidth  vg.Length = 760
	figureHeight vg.Length = 372
	figureDPI              = 192

	figureMargin vg.Length = 14
	headHeight   vg.Length = 78 // title, subtitle, legend, the panels' titles
	footHeight   vg.Length = 12
	panelGap     vg.Length = 10
)

var spanColour = color.NRGBA{R: 0xf3, G: 0xf4, B: 0xf6, A: 0xff}

// Save draws the figure to a file, PNG or SVG by its ending.
func (f *Figure) Save(path string) (err error) {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if format != "png" && format != "svg" {
		return fmt.Errorf("loadgen: figure %q: want a file ending of .png or .svg", path)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("loadgen: figure: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return f.Write(file, format)
}

// Write draws the figure in a format, "png" or "svg". An SVG embeds its fonts.
func (f *Figure) Write(w io.Writer, format string) error {
	if len(f.Panels) == 0 {
		return errors.New("loadgen: figure: no panels")
	}
	var out io.WriterTo
	switch format {
	case "png":
		canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(figureWidth, figureHeight), vgimg.UseDPI(figureDPI))}
		f.draw(draw.New(canvas))
		out = canvas
	case "svg":
		canvas := vgsvg.NewWith(vgsvg.UseWH(figureWidth, figureHeight), vgsvg.EmbedFonts(true))
		f.draw(draw.New(canvas))
		out = canvas
	default:
		return fmt.Errorf("loadgen: figure: format %q is not png or svg", format)
	}
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("loadgen: figure: %w", err)
	}
	return nil
}

func (f *Figure) draw(c draw.Canvas) {
	shown.Fill(c, c.Rectangle, color.White)
	c = draw.Crop(c, figureMargin, -figureMargin, 0, -figureMargin)
	tenants := f.tenants()
	f.drawHead(c, tenants)

	latency := f.latencyAxis()
	panels := make([]*panel, len(f.Panels))
	plots := make([]*plot.Plot, len(f.Panels))
	for i, of := range f.Panels {
		panels[i] = newPanel(of, tenants, f.Spans, latency)
		plots[i] = panels[i].axes
		latency.label = "" // all panels share the first one's labels
	}
	body := draw.Crop(c, 0, 0, footHeight, -headHeight)
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: panelGap}
	for i, area := range plot.Align([][]*plot.Plot{plots}, tiles, body)[0] {
		panels[i].draw(area)
	}
}

// drawHead draws title, subtitle and legend, from the top.
func (f *Figure) drawHead(c draw.Canvas, tenants []string) {
	at := vg.Point{X: c.Min.X, Y: c.Max.Y}
	c.FillText(shown.TextStyle(15, true, shown.Ink, draw.XLeft, draw.YTop), at, f.Title)
	at.Y -= 22
	c.FillText(shown.TextStyle(10.5, false, shown.Grey, draw.XLeft, draw.YTop), at, f.Subtitle)
	at.Y -= 27
	entry := func(mark func(middle vg.Point), label string, ink color.Color) {
		mark(at)
		at.X += 13
		style := shown.TextStyle(10, false, ink, draw.XLeft, draw.YCenter)
		c.FillText(style, at, label)
		at.X += style.Width(label) + 18
	}
	dot := func(ink color.Color) func(vg.Point) {
		return func(middle vg.Point) {
			middle.X += 4
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: ink, Radius: 3.4, Shape: draw.CircleGlyph{}}, middle)
		}
	}
	for i, tenant := range tenants {
		entry(dot(shown.Colour(i)), tenant, shown.Ink)
	}
	entry(func(middle vg.Point) {
		c.StrokeLine2(draw.LineStyle{Color: shown.Grey, Width: 2}, middle.X-2, middle.Y, middle.X+10, middle.Y)
	}, "median", shown.Grey)
	if f.anyUnserved() {
		entry(func(middle vg.Point) {
			c.StrokeLine2(draw.LineStyle{Color: shown.Grey, Width: 1}, middle.X+4, middle.Y-4, middle.X+4, middle.Y+4)
		}, "not served", shown.Grey)
	}
}

// tenants returns the tenants of all panels, each once, in the order of the plans: a tenant has one colour in all
// panels.
func (f *Figure) tenants() []string {
	var all Report
	for _, p := range f.Panels {
		all.Tracks = append(all.Tracks, p.Report.Tracks...)
	}
	return all.Tenants()
}

func (f *Figure) anyUnserved() bool {
	unserved := false
	f.each(func(r *Result) { unserved = unserved || !r.OK() })
	return unserved
}

// latencyAxis returns the axis that covers the TTFTs of all panels.
func (f *Figure) latencyAxis() latencyAxis {
	var low, high time.Duration
	f.each(func(r *Result) {
		if !r.OK() {
			return
		}
		if ttft := r.TTFT(); low == 0 || ttft < low {
			low = ttft
		}
		high = max(high, r.TTFT())
	})
	return newLatencyAxis(low, high)
}

func (f *Figure) each(visit func(*Result)) {
	for _, p := range f.Panels {
		for _, track := range p.Report.Tracks {
			for i := range track.Results {
				visit(&track.Results[i])
			}
		}
	}
}
