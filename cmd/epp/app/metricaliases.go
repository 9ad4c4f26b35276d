package app

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// aliases maps metrics of other endpoint pickers that autoscalers read to Weir's equivalent metrics. A label without an
// equivalent (fairness_id, priority) is left out: Weir's metric is the sum over it.
var aliases = []struct {
	name, of, help string
	labels         map[string]string // their labels by Weir's; other labels are dropped
}{
	{
		"llm_d_epp_flow_control_queue_size", "weir_queue_length", "The same as weir_queue_length, under llm-d's name.",
		map[string]string{"pool": "inference_pool", "model": "model_name", "target_model": "target_model_name"},
	},
	{
		"inference_extension_flow_control_queue_size", "weir_queue_length", "The same as weir_queue_length, under GIE's name.",
		map[string]string{"pool": "inference_pool", "model": "model_name", "target_model": "target_model_name"},
	},
	{
		"inference_pool_ready_pods", "weir_ready_backends", "The same as weir_ready_backends, under GIE's name.",
		map[string]string{"pool": "name"},
	},
}

// aliased returns a gatherer of the same metrics, some also under other names.
func aliased(of prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := of.Gather()
		byName := map[string]*dto.MetricFamily{}
		for _, f := range families {
			byName[f.GetName()] = f
		}
		for _, alias := range aliases {
			if f := byName[alias.of]; f != nil {
				families = append(families, renamed(f, alias.name, alias.help, alias.labels))
			}
		}
		return families, err
	})
}

// renamed returns a copy of a family with another name and other labels.
func renamed(f *dto.MetricFamily, name, help string, labels map[string]string) *dto.MetricFamily {
	copied := &dto.MetricFamily{Name: &name, Help: &help, Type: f.Type}
	for _, m := range f.GetMetric() {
		to := &dto.Metric{Gauge: m.Gauge}
		for _, l := range m.GetLabel() {
			if label, ok := labels[l.GetName()]; ok {
				to.Label = append(to.Label, &dto.LabelPair{Name: &label, Value: l.Value})
			}
		}
		copied.Metric = append(copied.Metric, to)
	}
	return copied
}
