package frontpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/weir-epp/weir/internal/status"
)

// MaxBytes is the largest size of a page.
const MaxBytes = 512 << 10

// The default and the longest time between refreshes of a page, in seconds.
const (
	Refresh     = 5
	MostRefresh = 3600
)

// Page is the content of a page.
type Page struct {
	// Document is shortened if the page would be too large.
	Document *status.Document
	// Query is the document's query.
	Query status.Query
	// Refresh is the time to the next page in seconds; 0: the page does not refresh, and has search fields.
	Refresh int
	// Index has the paths of the port.
	Index []Entry
}

// Entry is a path of the port with a line about it.
type Entry struct{ Path, About string }

var (
	//go:embed page.css
	style string
	//go:embed page.html
	markup string

	layout = template.Must(template.New("page").Parse(markup))
)

// Policy is the Content-Security-Policy of a page. The icon is an image in the page itself.
var Policy = fmt.Sprintf(
	"default-src 'none'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'", hashOf(style),
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Render returns the page as HTML.
func (p *Page) Render() ([]byte, error) {
	for {
		var out bytes.Buffer
		if err := layout.Execute(&out, p.view()); err != nil {
			return nil, fmt.Errorf("frontpage: %w", err)
		}
		if out.Len() <= MaxBytes {
			return out.Bytes(), nil
		}
		if !p.Document.Shorten() {
			return nil, fmt.Errorf("frontpage: a page without rows has %d bytes, more than %d", out.Len(), MaxBytes)
		}
	}
}

// view is the page in the layout's form.
type view struct {
	Style   template.CSS
	Healthy bool
	Verdict string
	Title   string
	Reasons []reason
	Notes   []string
	Tiles   []tile
	Tables  []table
	Index   []Entry
	At      string
	Version string
	Hashed  bool

	Refresh      int
	Pause, Go    string // links
	Engine, Flow string // searched for
	Only         string
	Kept         []field // parameters that a search keeps
	Clear        string  // link to the page without a search; "": there is none
}

// reason is a reason why an epp is unhealthy.
type reason struct{ ID, Text string }

// tile is one number at the top, with a bar if it is a part of a whole.
type tile struct {
	Name, Value, More string
	Bar               *bar
}

// field is a parameter of the page.
type field struct{ Name, Value string }

func (p *Page) view() *view {
	d := p.Document
	verdict, reasons := status.Judge([]status.Answer{{Document: d}})
	v := &view{
		Style:   template.CSS(style), //nolint:gosec // it is a part of the program
		Healthy: verdict == status.Healthy, Verdict: verdict.String(), Title: "weir", At: d.At.UTC().Format("2006-01-02 15:04:05 UTC"),
		Version: status.Plain(d.Version), Hashed: d.Pool.Hashed, Index: p.Index, Refresh: p.Refresh,
		Engine: p.Query.Engine, Flow: p.Query.Flow, Only: p.Query.Only, Pause: p.link("refresh", "0"), Go: p.link("refresh", ""), Kept: p.kept(),
	}
	if d.Pool.Name != "" {
		v.Title = "weir " + status.Plain(d.Pool.Name)
	}
	if p.Query.Engine+p.Query.Flow+p.Query.Only != "" {
		v.Clear = p.link("engine", "", "flow", "", "only-flow", "")
	}
	for _, r := range reasons {
		id, text, _ := strings.Cut(r, ": ")
		v.Reasons = append(v.Reasons, reason{id, text})
	}
	for i := range d.Notes {
		v.Notes = append(v.Notes, d.Notes[i].Line())
	}
	v.Tiles = tiles(d)
	v.Tables = p.tables()
	return v
}

// tiles returns the lines of the document, each with a bar if it is a part of a whole.
func tiles(d *status.Document) (all []tile) {
	bars := map[string]*bar{
		"engines": partOf(float64(d.Pool.ReadyEngines), float64(d.Pool.Engines)),
		"waiting": partOf(float64(d.Pool.Waiting), float64(d.Pool.QueueCapacity)),
	}
	if d.Pool.UpperBound != nil {
		bars["stock"] = partOf(float64(d.Pool.Stock), *d.Pool.UpperBound)
	}
	for _, line := range d.Lines() {
		value, more, _ := strings.Cut(line[1], ", ")
		all = append(all, tile{Name: line[0], Value: value, More: more, Bar: bars[line[0]]})
	}
	return all
}
