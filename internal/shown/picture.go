package shown

import (
	"bytes"
	"image/color"
	"regexp"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colours begins with the palette of Okabe and Ito, distinguishable with any colour vision, darkest first; the rest is of
// Tol's muted palette.
var colours = [...]color.NRGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, // blue
	{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, // vermilion
	{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, // bluish green
	{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, // reddish purple
	{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, // orange
	{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, // sky blue
	{R: 0x00, G: 0x00, B: 0x00, A: 0xff}, // black
	{R: 0x88, G: 0x22, B: 0x55, A: 0xff}, // wine
	{R: 0x99, G: 0x99, B: 0x33, A: 0xff}, // olive
	{R: 0x33, G: 0x22, B: 0x88, A: 0xff}, // indigo
	{R: 0x44, G: 0xaa, B: 0x99, A: 0xff}, // teal
	{R: 0x88, G: 0x88, B: 0x88, A: 0xff}, // grey
}

// MostSeries is the number of series that a picture can tell apart.
const MostSeries = len(colours)

// The colours of texts, of secondary texts, and of lines behind the data.
var (
	Ink  = color.NRGBA{R: 0x1f, G: 0x23, B: 0x28, A: 0xff}
	Grey = color.NRGBA{R: 0x59, G: 0x63, B: 0x6e, A: 0xff}
	Grid = color.NRGBA{R: 0xe4, G: 0xe7, B: 0xeb, A: 0xff}
)

// Colour returns the colour of the i-th series of a picture. The colours repeat after MostSeries.
func Colour(i int) color.NRGBA { return colours[i%len(colours)] }

// TextStyle returns a sans-serif style with a size in points.
func TextStyle(
	size vg.Length, bold bool, ink color.Color, x draw.XAlignment, y draw.YAlignment,
) draw.TextStyle {
	return draw.TextStyle{Color: ink, Font: textFont(size, bold), XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}

func textFont(size vg.Length, bold bool) font.Font {
	face := plot.DefaultFont
	face.Variant = "Sans"
	face.Size = size
	if bold {
		face.Weight = xfont.WeightBold
	}
	return face
}

// Fill fills a rectangle.
func Fill(c draw.Canvas, r vg.Rectangle, ink color.Color) {
	c.FillPolygon(ink, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}})
}

// AxisStyle gives an axis its label and its style.
func AxisStyle(axis *plot.Axis, label string) {
	axis.Padding = 0
	axis.Label.Text = label
	axis.Label.TextStyle.Font = textFont(9.5, false)
	axis.Label.TextStyle.Color = Grey
	axis.Label.Padding = 4
	axis.Tick.Label.Font = textFont(9.5, false)
	axis.Tick.Label.Color = Grey
	axis.Tick.Marker = plot.TickerFunc(shortTicks)
}

// shortTicks returns gonum's ticks, their labels without trailing zeros after the decimal point.
func shortTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, tick := range ticks {
		if strings.Contains(tick.Label, ".") && !strings.Contains(tick.Label, "e") {
			ticks[i].Label = strings.TrimRight(strings.TrimRight(tick.Label, "0"), ".")
		}
	}
	return ticks
}

var (
	embeddedFonts = regexp.MustCompile(`(?s)<defs>\s*<style>.*?</style>\s*</defs>\s*`)
	fontFamily    = []byte("font-family:Liberation Sans;")
	fontFamilies  = []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
)

// SystemFonts lets an SVG use the reader's own fonts: Arial has the metrics of Liberation Sans, and Helvetica nearly
// so.
func SystemFonts(svg []byte) []byte {
	return bytes.ReplaceAll(embeddedFonts.ReplaceAll(svg, nil), fontFamily, fontFamilies)
}
