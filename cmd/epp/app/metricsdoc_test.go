package app

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/weir-epp/weir/pkg/datastore/kube"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/tracing"
)

// metricsDoc is the page that has a row for each metric.
const metricsDoc = "../../../docs/metrics.md"

// TestMetricsAreDocumented checks that docs/metrics.md has a row for each metric that epp can export, with its labels,
// and no others. The metrics of the Go runtime and of the process are client_golang's, and not in the tables.
func TestMetricsAreDocumented(t *testing.T) {
	exported, documented := exportedMetrics(t), documentedMetrics(t)
	for name, labels := range exported {
		got, ok := documented[name]
		switch {
		case !ok:
			t.Errorf("%s is exported, and has no row in docs/metrics.md", name)
		case got != labels:
			t.Errorf("%s has the labels %q, docs/metrics.md says %q", name, labels, got)
		}
	}
	for name := range documented {
		if _, ok := exported[name]; !ok {
			t.Errorf("%s has a row in docs/metrics.md, and is not exported", name)
		}
	}
}

// documentedMetrics are the rows "| `name` | type | labels | …", with their labels sorted.
func documentedMetrics(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+)` \\| (?:counter|gauge|histogram|summary) \\|([^|]*)\\|")
	rows := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s has two rows in docs/metrics.md", m[1])
		}
		rows[m[1]] = sortedLabels(strings.ReplaceAll(m[2], "`", ""))
	}
	return rows
}

// exportedMetrics collects descriptions instead of values: a metric with labels has no value before its first event.
func exportedMetrics(t *testing.T) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(file, []byte("endpoints: [{address: \"192.0.2.1:8000\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := testOptions()
	options.Endpoints, options.EndpointsFile = nil, file
	options.SecureServing = true
	options.KVEvents.Port = "5557"
	cfg := tracing.DefaultConfig()
	options.Tracing = &cfg
	a := start(t, options).App

	d := &descriptions{metrics: map[string]string{}}
	for _, c := range a.pool.controller.Collectors() {
		d.add(c)
		d.addFields(c)
	}
	cluster, err := kube.NewCluster(&rest.Config{Host: "https://192.0.2.1"}, logr.Discard(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	replication := newReplicationMetrics(a.pool)
	replication.elects()
	for _, c := range slices.Concat(cluster.Collectors(), replication.collectors()) {
		d.add(c)
	}
	d.add(newNameMetrics(&a.pool.naming))
	d.add(newLoadMetrics(a.pool))
	// A second stream server registers its metrics.
	document := a.Config()
	if _, err := extproc.NewServer(document.ExtprocConfig(), extproc.Dependencies{
		Controller: extproc.Controlled(a.pool.controller), Picker: picker{}, Log: logr.Discard(), Registerer: d,
	}); err != nil {
		t.Fatal(err)
	}
	// The other metrics have constant labels, so they have values.
	families, err := a.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if _, known := d.metrics[name]; known || !strings.HasPrefix(name, "weir_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		d.metrics[name] = sortedLabels(strings.Join(labels, ","))
	}
	return d.metrics
}

// descriptions is a Registerer that records names and labels.
type descriptions struct{ metrics map[string]string }

// description matches the text form of a Desc.
var description = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)

func (d *descriptions) add(c prometheus.Collector) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for desc := range descs {
		if m := description.FindStringSubmatch(desc.String()); m != nil {
			d.metrics[m[1]] = sortedLabels(m[2])
		} else {
			d.metrics[desc.String()] = "cannot be read"
		}
	}
}

// addFields records the descriptions in the fields of a collector of Weir's own. A collector that describes itself by
// collecting omits metrics without an event.
func (d *descriptions) addFields(c prometheus.Collector) {
	v := reflect.ValueOf(c)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return
	}
	for _, f := range v.Elem().Fields() {
		if f.Type() != reflect.TypeFor[*prometheus.Desc]() || f.IsNil() {
			continue
		}
		var labels []string
		names := f.Elem().FieldByName("variableLabels").Elem().FieldByName("names")
		for i := range names.Len() {
			labels = append(labels, names.Index(i).String())
		}
		d.metrics[f.Elem().FieldByName("fqName").String()] = sortedLabels(strings.Join(labels, ","))
	}
}

// Register implements prometheus.Registerer.
func (d *descriptions) Register(c prometheus.Collector) error {
	d.add(c)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (d *descriptions) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		d.add(c)
	}
}

// Unregister implements prometheus.Registerer.
func (d *descriptions) Unregister(prometheus.Collector) bool { return false }

func sortedLabels(list string) string {
	var labels []string
	for l := range strings.SplitSeq(list, ",") {
		if l = strings.TrimSpace(l); l != "" {
			labels = append(labels, l)
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, ", ")
}
