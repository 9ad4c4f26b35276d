package simulate

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weir-epp/weir/internal/shown"
)

// MostPictured is the largest number of reports in a picture.
const MostPictured = 4

// The dimensions of a picture, in points of 1/72 inch.
const (
	columnWidth  vg.Length = 350
	rowHeight    vg.Length = 135
	pictureHead  vg.Length = 68
	pictureFoot  vg.Length = 10
	pictureInset vg.Length = 12
	columnGap    vg.Length = 18
	rowGap       vg.Length = 14
)

// row is one kind of figure over time. All reports share its axes.
type row struct {
	label string
	// lines returns the values of each line, by interval.
	lines func(r *Report) [][]float64
}

var rows = []row{
	{"tokens/s by flow", func(r *Report) [][]float64 {
		return columns(r.Over.Service, min(shown.MostSeries, len(r.Over.Flows)), 1/r.Over.IntervalSeconds)
	}},
	{"mean wait (s)", func(r *Report) [][]float64 { return of(r.Over.Wait, r.Over.Granted) }},
	{"mean TTFT (s)", func(r *Report) [][]float64 { return of(r.Over.TTFT, r.Over.Answered) }},
	{"hit tokens (%)", func(r *Report) [][]float64 {
		hits := make([]float64, len(r.Over.PromptTokens))
		for i, prompt := range r.Over.PromptTokens {
			hits[i] = math.NaN()
			if prompt > 0 {
				hits[i] = 100 * float64(r.Over.CachedTokens[i]) / float64(prompt)
			}
		}
		return [][]float64{hits}
	}},
	{"held by engine", func(r *Report) [][]float64 {
		return columns(r.Over.Held, min(shown.MostSeries, len(r.Over.Held[0])), 1)
	}},
}

// serviceRows are the rows of reports with ServiceFigures.
var serviceRows = []row{
	{"service/s by flow, of a minute", func(r *Report) [][]float64 {
		return r.overWindows(columns(r.Service.Service, min(shown.MostSeries, len(r.Service.Flows)), 1))
	}},
	{"difference, of a minute", func(r *Report) [][]float64 { return r.overWindows([][]float64{r.Service.Difference}) }},
	rows[1],
	rows[4],
}

// overWindows converts lines over windows to lines over intervals: each interval gets the window whose middle is its
// begin.
func (r *Report) overWindows(lines [][]float64) [][]float64 {
	of := make([][]float64, len(lines))
	for i, line := range lines {
		for n := range r.Over.Wait {
			y, at := math.NaN(), int(float64(n)*r.Over.IntervalSeconds)-serviceWarmUp-serviceWindow/2
			if at >= 0 && at < len(line) {
				y = line[at]
			}
			of[i] = append(of[i], y)
		}
	}
	return of
}

// rowsOf returns the rows of the reports' picture.
func rowsOf(reports []*Report) []row {
	if reports[0].Service != nil {
		return serviceRows
	}
	return rows
}

// of returns a line of means, with gaps at intervals without values.
func of(means []float64, n []int) [][]float64 {
	line := slices.Clone(means)
	for i := range line {
		if n[i] == 0 {
			line[i] = math.NaN()
		}
	}
	return [][]float64{line}
}

// columns returns the first columns of a table of rows, each value multiplied.
func columns[N int | int64 | float64](table [][]N, n int, by float64) [][]float64 {
	lines := make([][]float64, n)
	for _, values := range table {
		for i := range lines {
			lines[i] = append(lines[i], float64(values[i])*by)
		}
	}
	return lines
}

// WriteSVG draws up to MostPictured reports over time, side by side, one figure below the other. It uses the reader's
// fonts.
func WriteSVG(w io.Writer, title string, reports []*Report) error {
	if len(reports) == 0 || len(reports) > MostPictured {
		return fmt.Errorf("simulate: a picture of %d configurations: there is room for 1 to %d", len(reports), MostPictured)
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(pictureSize(len(reports), len(rowsOf(reports)))))
	drawPicture(draw.New(canvas), title, reports)
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return fmt.Errorf("simulate: drawing: %w", err)
	}
	_, err := w.Write(shown.SystemFonts(drawn.Bytes()))
	return err
}

func pictureSize(columns, rows int) (width, height vg.Length) {
	return 2*pictureInset + vg.Length(columns)*(columnWidth+columnGap) - columnGap,
		pictureHead + pictureFoot + vg.Length(rows)*(rowHeight+rowGap)
}

func drawPicture(c draw.Canvas, title string, reports []*Report) {
	shown.Fill(c, c.Rectangle, color.White)
	c = draw.Crop(c, pictureInset, -pictureInset, pictureFoot, -pictureInset)
	drawTitle(c, title, reports[0])

	long := 1.0
	for _, r := range reports {
		long = max(long, float64(len(r.Over.Wait))*r.Over.IntervalSeconds)
	}
	rows := rowsOf(reports)
	plots := make([][]*plot.Plot, len(rows))
	for i := range rows {
		high := 0.0
		for j, r := range reports {
			p, top := rows[i].plot(r)
			if high = max(high, top); j > 0 {
				p.Y.Label.Text = ""
			}
			if i < len(rows)-1 {
				p.X.Label.Text = ""
			}
			plots[i] = append(plots[i], p)
		}
		for _, p := range plots[i] {
			p.X.Min, p.X.Max = 0, long
			p.Y.Min, p.Y.Max = 0, max(high*1.05, 1e-3)
		}
	}
	body := draw.Crop(c, 0, 0, 0, -pictureHead+pictureInset)
	tiles := draw.Tiles{Rows: len(rows), Cols: len(reports), PadX: columnGap, PadY: rowGap}
	areas := plot.Align(plots, tiles, body)
	for i := range rows {
		for j, r := range reports {
			plots[i][j].Draw(areas[i][j])
			if i == 0 {
				data := plots[i][j].DataCanvas(areas[i][j])
				c.FillText(shown.TextStyle(11, true, shown.Ink, draw.XLeft, draw.YBottom), vg.Point{X: data.Min.X, Y: data.Max.Y + 5}, r.Name)
			}
		}
	}
}

// drawTitle draws the title, and the names of the flows in their colours.
func drawTitle(c draw.Canvas, title string, r *Report) {
	at := vg.Point{X: c.Min.X, Y: c.Max.Y}
	c.FillText(shown.TextStyle(13, true, shown.Ink, draw.XLeft, draw.YTop), at, title)
	at.Y -= 22
	for i, flow := range r.Over.Flows[:min(shown.MostSeries, len(r.Over.Flows))] {
		style := shown.TextStyle(9.5, false, shown.Colour(i), draw.XLeft, draw.YTop)
		if at.X+style.Width(flow) > c.Max.X {
			return
		}
		c.FillText(style, at, flow)
		at.X += style.Width(flow) + 14
	}
}

// plot returns the plot of a report's row, and its largest value.
func (of *row) plot(r *Report) (p *plot.Plot, top float64) {
	p = plot.New()
	p.BackgroundColor = nil
	shown.AxisStyle(&p.X, "time (s)")
	shown.AxisStyle(&p.Y, of.label)
	p.X.LineStyle = draw.LineStyle{Color: shown.Grey, Width: 0.8}
	p.X.Tick.LineStyle, p.X.Tick.Length = p.X.LineStyle, 3
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal = draw.LineStyle{Color: shown.Grid, Width: 0.6}
	p.Add(grid)
	for i, values := range of.lines(r) {
		var run plotter.XYs
		for n, y := range append(values, math.NaN()) {
			if !math.IsNaN(y) {
				run = append(run, plotter.XY{X: (float64(n) + 0.5) * r.Over.IntervalSeconds, Y: y})
				top = max(top, y)
				continue
			}
			if len(run) > 0 {
				p.Add(&plotter.Line{XYs: run, LineStyle: draw.LineStyle{Color: shown.Colour(i), Width: 1.4}})
			}
			run = nil
		}
	}
	return p, top
}
