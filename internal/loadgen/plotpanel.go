package loadgen

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// maxPoints bounds the points drawn for one tenant in one panel; if there are more, they are thinned evenly.
	maxPoints = 4000
	// wordsGap is the smallest distance between two tenants' texts beside a panel.
	wordsGap vg.Length = 42
)

// panel draws one report.
type panel struct {
	Panel
	spans    []Span
	tenants  []string // of the whole figure: the index gives the colour
	latency  latencyAxis
	labelled bool // draw the latency axis's labels to the left

	data vg.Rectangle // where the points are
}

func (p *panel) draw(c draw.Canvas) {
	p.data = c.Rectangle
	p.data.Min.Y += 28 // time axis
	p.data.Max.Y -= 20 // title
	p.data.Max.X -= wordsWidth
	c.FillText(textStyle(11.5, true, inkColour, draw.XLeft, draw.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y}, p.Title)
	p.drawSpans(c)
	p.drawLatencyAxis(c)
	p.drawTimeAxis(c)
	// The first tenant is drawn last, on top of the others.
	for i := range slices.Backward(p.tenants) {
		p.drawPoints(c, i)
	}
	for i := range slices.Backward(p.tenants) {
		p.drawMedian(c, i)
	}
	p.drawWords(c)
}

func (p *panel) x(at time.Duration) vg.Length {
	part := min(max(float64(at)/float64(max(p.Report.Length, 1)), 0), 1)
	return p.data.Min.X + vg.Length(part)*(p.data.Max.X-p.data.Min.X)
}

func (p *panel) y(latency time.Duration) vg.Length {
	return p.data.Min.Y + vg.Length(p.latency.place(latency))*(p.data.Max.Y-p.data.Min.Y)
}

func (p *panel) drawSpans(c draw.Canvas) {
	for _, span := range p.spans {
		left, right := p.x(span.From), p.x(span.To)
		fillRectangle(c, vg.Rectangle{
			Min: vg.Point{X: left, Y: p.data.Min.Y}, Max: vg.Point{X: right, Y: p.data.Max.Y},
		}, spanColour)
		style := textStyle(8.5, false, greyColour, draw.XCenter, draw.YTop)
		c.FillText(style, vg.Point{X: (left + right) / 2, Y: p.data.Max.Y - 3}, span.Label)
	}
}

func (p *panel) drawLatencyAxis(c draw.Canvas) {
	for _, tick := range p.latency.ticks() {
		y := p.y(tick)
		c.StrokeLine2(draw.LineStyle{Color: gridColour, Width: 0.6}, p.data.Min.X, y, p.data.Max.X, y)
		if p.labelled {
			c.FillText(latencyTickStyle(), vg.Point{X: p.data.Min.X - 6, Y: y}, durationText(tick))
		}
	}
	if p.labelled {
		style := textStyle(9.5, false, greyColour, draw.XCenter, draw.YTop)
		style.Rotation = math.Pi / 2
		middle := (p.data.Min.Y + p.data.Max.Y) / 2
		c.FillText(style, vg.Point{X: p.data.Min.X - p.latency.width(), Y: middle}, "time to first token (log scale)")
	}
}

func (p *panel) drawTimeAxis(c draw.Canvas) {
	c.StrokeLine2(draw.LineStyle{Color: greyColour, Width: 0.8}, p.data.Min.X, p.data.Min.Y, p.data.Max.X, p.data.Min.Y)
	style := textStyle(9.5, false, greyColour, draw.XCenter, draw.YTop)
	step := timeStep(p.Report.Length)
	for tick := time.Duration(0); tick <= p.Report.Length; tick += step {
		x := p.x(tick)
		c.StrokeLine2(draw.LineStyle{Color: greyColour, Width: 0.8}, x, p.data.Min.Y, x, p.data.Min.Y-3)
		c.FillText(style, vg.Point{X: x, Y: p.data.Min.Y - 5}, secondsText(tick))
	}
	middle := (p.data.Min.X + p.data.Max.X) / 2
	c.FillText(style, vg.Point{X: middle, Y: p.data.Min.Y - 18}, "time since the start (s)")
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

// drawPoints draws a tenant's requests, small and faint if there are many.
func (p *panel) drawPoints(c draw.Canvas, tenant int) {
	count := 0
	p.results(tenant, 1, func(*Result) { count++ })
	ink := tenantColour(tenant)
	radius := 2.1
	ink.A = 0xa0
	if count > 300 {
		radius = 1.25
		ink.A = uint8(min(max(0x60*1500/count, 0x28), 0x80))
	}
	glyph := draw.GlyphStyle{Color: ink, Radius: vg.Length(radius), Shape: draw.CircleGlyph{}}
	p.results(tenant, (count+maxPoints-1)/maxPoints, func(r *Result) {
		x := p.x(r.Start)
		if r.OK() {
			c.DrawGlyphNoClip(glyph, vg.Point{X: x, Y: p.y(r.TTFT())})
			return
		}
		c.StrokeLine2(draw.LineStyle{Color: ink, Width: 0.5}, x, p.data.Min.Y, x, p.data.Min.Y+6)
	})
}

// drawMedian draws the medians of a tenant's TTFTs over equal intervals. The line is broken where an interval has no
// answers.
func (p *panel) drawMedian(c draw.Canvas, tenant int) {
	count := 0
	p.results(tenant, 1, func(*Result) { count++ })
	bins := make([][]time.Duration, min(max(count/6, 5), 40))
	width := max(p.Report.Length/time.Duration(len(bins)), 1)
	p.results(tenant, 1, func(r *Result) {
		if bin := int(r.Start / width); r.OK() && bin < len(bins) {
			bins[bin] = append(bins[bin], r.TTFT())
		}
	})
	var line []vg.Point
	stroke := func() {
		// A white line below separates it from the points.
		c.StrokeLines(draw.LineStyle{Color: color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xc0}, Width: 4}, line)
		c.StrokeLines(draw.LineStyle{Color: tenantColour(tenant), Width: 2}, line)
		line = nil
	}
	for i, bin := range bins {
		if len(bin) == 0 {
			stroke()
			continue
		}
		slices.Sort(bin)
		middle := time.Duration(i)*width + width/2
		line = append(line, vg.Point{X: p.x(middle), Y: p.y(nearestRank(bin, 50))})
	}
	stroke()
}

// drawWords draws each tenant's name and percentiles beside its line.
func (p *panel) drawWords(c draw.Canvas) {
	type words struct {
		tenant  int
		summary TenantSummary
		top     vg.Length
	}
	var all []words
	summary := Summarise(p.Title, p.Report)
	for i, name := range p.tenants {
		if tenant, ok := summary.Tenant(name); ok {
			all = append(all, words{tenant: i, summary: tenant, top: p.y(tenant.TTFT.P50) + 18})
		}
	}
	slices.SortStableFunc(all, func(a, b words) int { return int(math.Copysign(1, float64(b.top-a.top))) })
	// From the bottom up, keep a gap above the text below; then from the top down, keep within the panel.
	floor := p.data.Min.Y + wordsGap - 4
	for i := len(all) - 1; i >= 0; i-- {
		all[i].top = max(all[i].top, floor)
		floor = all[i].top + wordsGap
	}
	ceiling := p.data.Max.Y
	for i := range all {
		all[i].top = min(all[i].top, ceiling)
		ceiling = all[i].top - wordsGap
	}
	for _, w := range all {
		ink := tenantColour(w.tenant)
		at := vg.Point{X: p.data.Max.X + 7, Y: w.top}
		c.FillText(textStyle(10, true, ink, draw.XLeft, draw.YTop), at, w.summary.Tenant)
		lines := []string{
			"p50 " + latencyText(w.summary.TTFT, w.summary.TTFT.P50),
			"p99 " + latencyText(w.summary.TTFT, w.summary.TTFT.P99),
		}
		if unserved := w.summary.Rejected + w.summary.Failed; unserved > 0 {
			lines[1] = fmt.Sprintf("%d not served", unserved)
		}
		for _, line := range lines {
			at.Y -= 12
			c.FillText(textStyle(9.5, false, ink, draw.XLeft, draw.YTop), at, line)
		}
	}
}
