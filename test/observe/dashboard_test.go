package observe

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// dashboardFile is the dashboard that the chart installs.
const dashboardFile = "../../charts/weir/files/dashboards/weir.json"

// panel has the fields read from a panel: its question, its queries, and its red values.
type panel struct {
	Title   string
	Type    string
	Targets []struct {
		RefID, Expr string
	}
	FieldConfig struct {
		Defaults struct {
			Thresholds struct {
				Steps []struct {
					Value *float64 // of the first: null
					Color string
				}
			}
		}
	}
}

var panels = sync.OnceValues(func() (all []panel, err error) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		return nil, err
	}
	var board struct{ Panels []panel }
	if err := json.Unmarshal(text, &board); err != nil {
		return nil, err
	}
	for _, p := range board.Panels {
		if p.Type != "row" {
			all = append(all, p)
		}
	}
	return all, nil
})

// allPanels returns the panels of the dashboard, without its rows.
func allPanels(t *testing.T) []panel {
	t.Helper()
	all, err := panels()
	if err != nil || len(all) == 0 {
		t.Fatalf("%s has %d panels: %v", dashboardFile, len(all), err)
	}
	return all
}

// Each panel has a test here that makes it red by its fault, and no panel has a constant as a value.
func TestEveryPanelIsAsked(t *testing.T) {
	tests := ""
	for _, file := range []string{"questions_test.go", "replicas_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests += string(text)
	}
	for _, p := range allPanels(t) {
		asked := regexp.MustCompile(`[rR]ed\("` + regexp.QuoteMeta(p.Title) + `"`)
		named := regexp.MustCompile(`(\w+)\b[^=\n]* = .*"` + regexp.QuoteMeta(p.Title) + `"`)
		if !asked.MatchString(tests) && !named.MatchString(tests) {
			t.Errorf("no test asks %q", p.Title)
		}
		for _, query := range p.queries(namespace, "a") {
			if strings.Contains(query, "vector(") {
				t.Errorf("%q has a constant: %s", p.Title, query)
			}
		}
	}
}

// panelOf returns the panel with this question.
func panelOf(t *testing.T, title string) panel {
	t.Helper()
	for _, p := range allPanels(t) {
		if p.Title == title {
			return p
		}
	}
	t.Fatalf("no panel asks %q", title)
	return panel{}
}

// red reports whether a value is drawn in red: it has the colour of the last step that it reaches. Grafana draws no
// NaN.
func (p panel) red(value float64) bool {
	colour := ""
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if !math.IsNaN(value) && (step.Value == nil || value >= *step.Value) {
			colour = step.Color
		}
	}
	return colour == "red"
}

// queries returns the panel's queries for one installation: the values of the dashboard's variables.
func (p panel) queries(namespace, job string) []string {
	variables := strings.NewReplacer("$namespace", namespace, "$job", job, "$envoys", job+"/envoy", "$__rate_interval", "10s")
	all := make([]string, len(p.Targets))
	for i, target := range p.Targets {
		all[i] = variables.Replace(target.Expr)
	}
	return all
}
