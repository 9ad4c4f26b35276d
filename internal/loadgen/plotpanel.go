package loadgen

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-epp/weir/internal/shown"
)

// maxPoints bounds the points drawn for one tenant in one panel; if there are more, they are thinned evenly.
const maxPoints = 4000

// panel is the plot of one report. Both axes are in seconds.
type panel struct {
	Panel
	tenants []string // of the whole figure: the index gives the colour
	axes    *plot.Plot
}

func newPanel(of Panel, tenants []string, spans []Span, latency latencyAxis) *panel {
	p := &panel{Panel: of, tenants: tenants, axes: plot.New()}
	p.axes.BackgroundColor = nil
	shown.AxisStyle(&p.axes.X, "time since the start (s)")
	p.axes.X.LineStyle = draw.LineStyle{Color: shown.Grey, Width: 0.8}
	p.axes.X.Tick.LineStyle = p.axes.X.LineStyle
	p.axes.X.Tick.Length = 3
	shown.AxisStyle(&p.axes.Y, latency.label)
	p.axes.Y.LineStyle.Width, p.axes.Y.Tick.Length = 0, 0
	p.axes.Y.Scale, p.axes.Y.Tick.Marker = plot.LogScale{}, latency

	for _, span := range spans {
		p.addSpan(span, latency)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal = draw.LineStyle{Color: shown.Grid, Width: 0.6}
	p.axes.Add(grid)
	// The first tenant is drawn last, on top of the others.
	for i := range slices.Backward(tenants) {
		p.addPoints(i, latency)
	}
	for i := range slices.Backward(tenants) {
		p.addMedians(i)
	}
	p.axes.Add(words{p})
	p.axes.X.Min, p.axes.X.Max = 0, max(of.Report.Length, 1).Seconds()
	p.axes.Y.Min, p.axes.Y.Max = latency.low.Seconds(), latency.high.Seconds()
	return p
}

// draw draws the panel in the area that plot.Align has chosen, and its title above the data.
func (p *panel) draw(c draw.Canvas) {
	data := p.axes.DataCanvas(c)
	c.FillText(shown.TextStyle(11.5, true, shown.Ink, draw.XLeft, draw.YBottom), vg.Point{X: data.Min.X, Y: data.Max.Y + 7}, p.Title)
	p.axes.Draw(c)
}

// addSpan adds a shaded stretch of time with its label.
func (p *panel) addSpan(span Span, latency latencyAxis) {
	from, to := span.From.Seconds(), min(span.To, p.Report.Length).Seconds()
	low, high := latency.low.Seconds(), latency.high.Seconds()
	area := &plotter.Polygon{XYs: []plotter.XYs{{{X: from, Y: low}, {X: to, Y: low}, {X: to, Y: high}, {X: from, Y: high}}}}
	area.Color = spanColour
	label := &plotter.Labels{
		XYs: plotter.XYs{{X: (from + to) / 2, Y: high}}, Labels: []string{span.Label}, Offset: vg.Point{Y: -3},
		TextStyle: []draw.TextStyle{shown.TextStyle(8.5, false, shown.Grey, draw.XCenter, draw.YTop)},
	}
	p.axes.Add(area, label)
}

// results visits the results of one tenant, each step-th of every track.
func (p *panel) results(tenant, step int, visit func(*Result)) {
	for _, track := range p.Report.Tracks {
		if track.Tenant != p.tenants[tenant] {
			continue
		}
		for i := 0; i < len(track.Results); i += step {
			visit(&track.Results[i])
		}
	}
}

func (p *panel) count(tenant int) int {
	count := 0
	p.results(tenant, 1, func(*Result) { count++ })
	return count
}

// addPoints adds a tenant's requests, small and faint if there are many, and requests not served at the bottom.
func (p *panel) addPoints(tenant int, latency latencyAxis) {
	count := p.count(tenant)
	ink := shown.Colour(tenant)
	radius := 2.1
	ink.A = 0xa0
	if count > 300 {
		radius = 1.25
		ink.A = uint8(min(max(0x60*1500/count, 0x28), 0x80))
	}
	served := &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: ink, Radius: vg.Length(radius), Shape: draw.CircleGlyph{}}}
	unserved := &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: ink, Radius: 3, Shape: tickGlyph{}}}
	p.results(tenant, (count+maxPoints-1)/maxPoints, func(r *Result) {
		at := plotter.XY{X: r.Start.Seconds(), Y: latency.low.Seconds()}
		if r.OK() {
			at.Y = max(r.TTFT(), 1).Seconds()
			served.XYs = append(served.XYs, at)
		} else {
			unserved.XYs = append(unserved.XYs, at)
		}
	})
	p.axes.Add(served, unserved)
}

// tickGlyph is a line upward from a point, of twice the radius.
type tickGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (tickGlyph) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: style.Color, Width: 0.5}, at.X, at.Y, at.X, at.Y+2*style.Radius)
}

// addMedians adds the medians of a tenant's TTFTs over equal intervals. The line is broken where an interval has no
// answers.
func (p *panel) addMedians(tenant int) {
	bins := make([][]time.Duration, min(max(p.count(tenant)/6, 5), 40))
	width := max(p.Report.Length/time.Duration(len(bins)), 1)
	p.results(tenant, 1, func(r *Result) {
		if bin := int(r.Start / width); r.OK() && bin < len(bins) {
			bins[bin] = append(bins[bin], r.TTFT())
		}
	})
	var run plotter.XYs
	for i, bin := range append(bins, nil) {
		if len(bin) > 0 {
			slices.Sort(bin)
			middle := time.Duration(i)*width + width/2
			run = append(run, plotter.XY{X: middle.Seconds(), Y: max(nearestRank(bin, 50), 1).Seconds()})
			continue
		}
		if len(run) > 0 {
			// A white line below separates it from the points.
			white := color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xc0}
			p.axes.Add(
				&plotter.Line{XYs: run, LineStyle: draw.LineStyle{Color: white, Width: 4}},
				&plotter.Line{XYs: run, LineStyle: draw.LineStyle{Color: shown.Colour(tenant), Width: 2}},
			)
		}
		run = nil
	}
}

// words is a plotter that writes each tenant's name and percentiles beside its line, to the right of the data.
type words struct{ *panel }

// The width of the texts, and the smallest distance between two tenants' texts.
const (
	wordsWidth vg.Length = 74
	wordsGap   vg.Length = 42
)

// GlyphBoxes implements plot.GlyphBoxer: the plot leaves this width free.
func (words) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: wordsWidth, Y: 1}}}}
}

// Plot implements plot.Plotter.
func (p words) Plot(c draw.Canvas, axes *plot.Plot) {
	type entry struct {
		tenant  int
		summary TenantSummary
		top     vg.Length
	}
	_, y := axes.Transforms(&c)
	var all []entry
	summary := Summarise(p.Title, p.Report)
	for i, name := range p.tenants {
		if tenant, ok := summary.Tenant(name); ok {
			all = append(all, entry{tenant: i, summary: tenant, top: y(max(tenant.TTFT.P50.Seconds(), axes.Y.Min)) + 18})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(math.Copysign(1, float64(b.top-a.top))) })
	// From the bottom up, keep a gap above the text below; then from the top down, keep within the panel.
	floor := c.Min.Y + wordsGap - 4
	for i := len(all) - 1; i >= 0; i-- {
		all[i].top = max(all[i].top, floor)
		floor = all[i].top + wordsGap
	}
	ceiling := c.Max.Y
	for i := range all {
		all[i].top = min(all[i].top, ceiling)
		ceiling = all[i].top - wordsGap
	}
	for _, e := range all {
		ink := shown.Colour(e.tenant)
		at := vg.Point{X: c.Max.X + 7, Y: e.top}
		c.FillText(shown.TextStyle(10, true, ink, draw.XLeft, draw.YTop), at, e.summary.Tenant)
		lines := []string{
			"p50 " + latencyText(e.summary.TTFT, e.summary.TTFT.P50),
			"p99 " + latencyText(e.summary.TTFT, e.summary.TTFT.P99),
		}
		if unserved := e.summary.Rejected + e.summary.Failed; unserved > 0 {
			lines[1] = fmt.Sprintf("%d not served", unserved)
		}
		for _, line := range lines {
			at.Y -= 12
			c.FillText(shown.TextStyle(9.5, false, ink, draw.XLeft, draw.YTop), at, line)
		}
	}
}
