package chart

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboards are the files of the chart's dashboards.
func dashboards(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(chartDir + "/files/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are the dashboards %v: %v", files, err)
	}
	return files
}

// board has the fields read from a dashboard.
type board struct {
	UID, Title, Description string
	Templating              struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               struct{ UID string }
		FieldConfig              struct {
			Defaults struct {
				Unit       string
				Thresholds struct{ Steps []struct{ Color string } }
			}
		}
		Targets []struct {
			Expr, LegendFormat string
			Datasource         struct{ UID string }
		}
	}
}

// promWords are the words of a query besides metrics and labels.
var (
	matchers  = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`)
	groupings = regexp.MustCompile(`\b(?:by|on|group_left|group_right|ignoring|without) ?\([^)]*\)`)
	promWord  = regexp.MustCompile(`\b[a-z_][a-z0-9_:]*\b`)
	promWords = []string{
		"sum", "max", "min", "count", "rate", "topk", "time", "and", "or", "unless", "avg_over_time", "min_over_time", "max_over_time",
	}
)

// Each panel is a question, with a unit, thresholds and a description that names the red values. Its queries use the
// chosen data source and metrics in docs/metrics.md, which TestMetricsAreDocumented compares with epp's export.
func TestDashboardsAskForMetricsThatExist(t *testing.T) {
	page := readFile(t, "../../docs/metrics.md")
	const chosen = "${datasource}"
	for _, file := range dashboards(t) {
		var b board
		if err := json.Unmarshal([]byte(readFile(t, file)), &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if b.UID == "" || b.Title == "" || b.Description == "" {
			t.Errorf("%s: the uid, title and description are %q, %q, %q", file, b.UID, b.Title, b.Description)
		}
		if list := b.Templating.List; len(list) == 0 || list[0].Name != "datasource" || list[0].Type != "datasource" || list[0].Query != "prometheus" {
			t.Errorf("%s: the first variable is not the data source: %+v", file, list)
		}
		ids := map[int]bool{}
		for _, p := range b.Panels {
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: %q has the id %d", file, p.Title, p.ID)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			d := p.FieldConfig.Defaults
			if !strings.HasSuffix(p.Title, "?") || d.Unit == "" || p.Datasource.UID != chosen || len(p.Targets) == 0 {
				t.Errorf("%s: %q has the unit %q, the data source %q and %d queries", file, p.Title, d.Unit, p.Datasource.UID, len(p.Targets))
			}
			if !strings.Contains(p.Description, " Red: ") || len(d.Thresholds.Steps) < 2 {
				t.Errorf("%s: %q does not name the red values: %s", file, p.Title, p.Description)
			}
			for _, q := range p.Targets {
				if q.Datasource.UID != chosen || q.LegendFormat == "" {
					t.Errorf("%s: %q has a query with the data source %q and the legend %q", file, p.Title, q.Datasource.UID, q.LegendFormat)
				}
				for _, word := range promWord.FindAllString(groupings.ReplaceAllString(matchers.ReplaceAllString(q.Expr, ""), ""), -1) {
					name := strings.TrimSuffix(strings.TrimSuffix(word, "_sum"), "_count")
					if !slices.Contains(promWords, word) && !strings.Contains(page, "| `"+name+"` |") {
						t.Errorf("%s: %q asks for %s, which docs/metrics.md does not have", file, p.Title, word)
					}
				}
			}
		}
	}
}

// The chart installs each file unchanged, braces and all, where the sidecar of Grafana finds it, and only on request.
func TestDashboardsAreInstalled(t *testing.T) {
	const largest = 1 << 20 // of a ConfigMap's data
	for key := range render(t, minimal) {
		if strings.Contains(key, "dashboard") {
			t.Errorf("%s is there, although not requested", key)
		}
	}
	plain := render(t, minimal, "grafana: { dashboards: { enabled: true } }\n")
	own := render(t, minimal, "grafana: { dashboards: { enabled: true, folder: Models, "+
		"labels: { find_me: \"yes\" }, annotations: { a.example/b: c } } }\n")
	for _, file := range dashboards(t) {
		base := filepath.Base(file)
		key := "ConfigMap/llama-weir-dashboard-" + strings.TrimSuffix(base, ".json")
		o := plain.get(t, key)
		if text := readFile(t, file); o.text("data", base) != text || len(text) >= largest {
			t.Errorf("%s is not the file, whose size is %d", key, len(text))
		}
		if label := o.text("metadata", "labels", "grafana_dashboard"); label != "1" {
			t.Errorf("%s has the label %q", key, label)
		}
		if o.at("metadata", "annotations") != nil {
			t.Errorf("%s has unexpected annotations", key)
		}
		o = own.get(t, key)
		for path, want := range map[string]string{"labels find_me": "yes", "annotations a.example/b": "c", "annotations grafana_folder": "Models"} {
			kind, name, _ := strings.Cut(path, " ")
			if got := o.text("metadata", kind, name); got != want {
				t.Errorf("%s: %s is %q, want %s", key, path, got, want)
			}
		}
	}
}
