package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// These tests state the contents of the ecosystem's definitions. They hold for Weir's own, and for the published ones
// with UPSTREAM_CRDS=DIR: so an object valid for one means the same to the other.

// kinds are those that Weir reads: all namespaced, each with its own status.
var kinds = []struct {
	group, version, kind string
	shortNames, columns  []any
}{
	{
		group: "inference.networking.k8s.io", version: "v1", kind: "InferencePool",
		shortNames: []any{"infpool"},
	},
	{
		group: "llm-d.ai", version: "v1alpha2", kind: "InferenceObjective",
		columns: []any{"Inference Pool .spec.poolRef.name", "Priority .spec.priority", age},
	},
	{
		group: "inference.networking.x-k8s.io", version: "v1alpha2", kind: "InferenceObjective",
		columns: []any{"Inference Pool .spec.poolRef.name", "Priority .spec.priority", age},
	},
	{
		group: "llm-d.ai", version: "v1alpha2", kind: "InferenceModelRewrite",
		columns: []any{"Inference Pool .spec.poolRef.name", age},
	},
	{
		group: "inference.networking.x-k8s.io", version: "v1alpha2", kind: "InferenceModelRewrite",
		columns: []any{"Inference Pool .spec.poolRef.name", age},
	},
	{
		group: "inference.networking.x-k8s.io", version: "v1alpha2", kind: "InferenceModel",
		columns: []any{
			"Model Name .spec.modelName", "Inference Pool .spec.poolRef.name", "Criticality .spec.criticality", age,
		},
	},
}

const age = "Age .metadata.creationTimestamp"

// resource returns the plural, the name of a kind's objects for clients and Roles.
func resource(group, version, kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: strings.ToLower(kind) + "s"}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, k := range kinds {
		name := strings.ToLower(k.kind) + "s." + k.group
		got, err := w.env.Objects().Resource(resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition")).
			Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec := got.Object["spec"].(map[string]any)
		versions := spec["versions"].([]any)
		version := versions[0].(map[string]any)
		var columns []any
		printed, _ := version["additionalPrinterColumns"].([]any)
		for _, column := range printed {
			c := column.(map[string]any)
			columns = append(columns, fmt.Sprint(c["name"], " ", c["jsonPath"]))
		}
		names := spec["names"].(map[string]any)
		short, _ := names["shortNames"].([]any)
		for what, pair := range map[string][2]any{
			"group":       {spec["group"], k.group},
			"kind":        {names["kind"], k.kind},
			"list":        {names["listKind"], k.kind + "List"},
			"singular":    {names["singular"], strings.ToLower(k.kind)},
			"short names": {short, k.shortNames},
			"scope":       {spec["scope"], "Namespaced"},
			"versions":    {len(versions), 1},
			"version":     {version["name"], k.version},
			"subresource": {version["subresources"], map[string]any{"status": map[string]any{}}},
			"columns":     {columns, k.columns},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %s is %v, want %v", name, what, pair[0], pair[1])
			}
		}
	}
}

// samples are objects with every field that Weir knows, in the apiserver's form, defaults included.
var samples = map[string]struct {
	given, added string
	into         func() any
}{
	"the least pool": {
		given: `{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {name: least},
			spec: {selector: {matchLabels: {app: chat}}, targetPorts: [{number: 8000}]}}`,
		added: `{appProtocol: http}`,
		into:  func() any { return &kubeapi.InferencePool{} },
	},
	"a pool with an endpoint picker": {
		given: `{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {name: picked},
			spec: {selector: {matchLabels: {app: chat}}, targetPorts: [{number: 8000}],
			  endpointPickerRef: {name: weir, port: {number: 9002}}}}`,
		added: `{appProtocol: http,
			endpointPickerRef: {group: "", kind: Service, name: weir, port: {number: 9002}, failureMode: FailClose}}`,
		into: func() any { return &kubeapi.InferencePool{} },
	},
	"a whole pool": {
		given: `{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {name: whole},
			spec: {selector: {matchLabels: {app: chat, empty: ""}}, appProtocol: kubernetes.io/h2c,
			  targetPorts: [{number: 1}, {number: 2}, {number: 3}, {number: 4}, {number: 5}, {number: 6}, {number: 7},
			    {number: 65535}],
			  endpointPickerRef: {group: "", kind: Service, name: weir, port: {number: 9002}, failureMode: FailOpen}}}`,
		into: func() any { return &kubeapi.InferencePool{} },
	},
	"an objective": {
		given: `{apiVersion: llm-d.ai/v1alpha2, kind: InferenceObjective, metadata: {name: urgent},
			spec: {priority: -2147483648, poolRef: {name: chat}}}`,
		added: `{poolRef: {group: inference.networking.k8s.io, kind: InferencePool, name: chat}}`,
		into:  func() any { return &kubeapi.InferenceObjective{} },
	},
	"an old objective without a priority": {
		given: `{apiVersion: inference.networking.x-k8s.io/v1alpha2, kind: InferenceObjective, metadata: {name: usual},
			spec: {poolRef: {group: inference.networking.x-k8s.io, name: chat}}}`,
		added: `{poolRef: {group: inference.networking.x-k8s.io, kind: InferencePool, name: chat}}`,
		into:  func() any { return &kubeapi.InferenceObjective{} },
	},
	"a rewrite": {
		given: `{apiVersion: llm-d.ai/v1alpha2, kind: InferenceModelRewrite, metadata: {name: names},
			spec: {poolRef: {group: inference.networking.k8s.io, kind: InferencePool, name: chat}, rules: [
			  {matches: [{model: {type: Exact, value: a}}, {model: {type: Exact, value: b}}],
			   targets: [{modelRewrite: c, weight: 1}, {modelRewrite: d, weight: 1000000}]},
			  {targets: [{modelRewrite: e}]}, {}]}}`,
		into: func() any { return &kubeapi.InferenceModelRewrite{} },
	},
	"an old rewrite": {
		given: `{apiVersion: inference.networking.x-k8s.io/v1alpha2, kind: InferenceModelRewrite, metadata: {name: names},
			spec: {poolRef: {name: chat}, rules: [{matches: [{model: {value: a}}]}]}}`,
		added: `{poolRef: {group: inference.networking.k8s.io, kind: InferencePool, name: chat},
			rules: [{matches: [{model: {type: Exact, value: a}}]}]}`,
		into: func() any { return &kubeapi.InferenceModelRewrite{} },
	},
	"a model": {
		given: `{apiVersion: inference.networking.x-k8s.io/v1alpha2, kind: InferenceModel, metadata: {name: chat},
			spec: {modelName: chat, criticality: Sheddable, poolRef: {name: chat},
			  targetModels: [{name: a, weight: 1}, {name: b, weight: 1000000}]}}`,
		added: `{poolRef: {group: inference.networking.x-k8s.io, kind: InferencePool, name: chat}}`,
		into:  func() any { return &kubeapi.InferenceModel{} },
	},
	"the least model": {
		given: `{apiVersion: inference.networking.x-k8s.io/v1alpha2, kind: InferenceModel, metadata: {name: least},
			spec: {modelName: least, poolRef: {group: inference.networking.k8s.io, kind: InferencePool, name: chat}}}`,
		into: func() any { return &kubeapi.InferenceModel{} },
	},
}

// An object with all fields that Weir knows is accepted unchanged, except for defaults, and Weir's types lose nothing
// of it.
func TestObjectsOfTheEcosystem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, sample := range samples {
		t.Run(name, func(t *testing.T) {
			w.env.Apply(t, w.namespace, sample.given)
			var given, added map[string]any
			if err := yaml.Unmarshal([]byte(sample.given), &given); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(sample.added), &added); err != nil {
				t.Fatal(err)
			}
			wanted := &unstructured.Unstructured{Object: given}
			want := given["spec"].(map[string]any)
			maps.Copy(want, added)
			gvk := wanted.GroupVersionKind()
			got, err := w.env.Objects().Resource(resource(gvk.Group, gvk.Version, gvk.Kind)).Namespace(w.namespace).
				Get(t.Context(), wanted.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if text := spec(t, got.Object); text != spec(t, map[string]any{"spec": want}) {
				t.Errorf("the apiserver has\n%s\nwant\n%s", text, spec(t, map[string]any{"spec": want}))
			}

			delete(got.Object, "status")
			object := sample.into()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(got.Object, object, true); err != nil {
				t.Fatalf("Weir's type: %v", err)
			}
			back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			unstructured.RemoveNestedField(got.Object, "spec", "endpointPickerRef", "group") // empty, which is none
			if text := spec(t, back); text != spec(t, got.Object) {
				t.Errorf("Weir's type has\n%s\nwant\n%s", text, spec(t, got.Object))
			}
		})
	}
}

// spec returns an object's spec as text, its keys in order.
func spec(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Unusable objects are refused, with the name of the field.
func TestObjectsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const (
		pools      = "apiVersion: inference.networking.k8s.io/v1, kind: InferencePool"
		objectives = "apiVersion: llm-d.ai/v1alpha2, kind: InferenceObjective"
		rewrites   = "apiVersion: llm-d.ai/v1alpha2, kind: InferenceModelRewrite"
		models     = "apiVersion: inference.networking.x-k8s.io/v1alpha2, kind: InferenceModel"
		selector   = "selector: {matchLabels: {app: chat}}"
		ports      = "targetPorts: [{number: 8000}]"
		toPool     = "poolRef: {name: chat}"
		five       = "{number: 1}, {number: 2}, {number: 3}, {number: 4}, {number: 5}"
		nine       = five + ", {number: 6}, {number: 7}, {number: 8}, {number: 9}"
	)
	for _, c := range []struct{ kind, spec, field string }{
		{pools, ports, "spec.selector"},
		{pools, ports + ", selector: {matchLabels: {}}", "matchLabels"},
		{pools, ports + ", selector: {matchLabels: {app: 'no label'}}", "matchLabels"},
		{pools, ports + ", selector: {matchExpressions: []}", "selector.matchExpressions"},
		{pools, selector, "spec.targetPorts"},
		{pools, selector + ", targetPorts: []", "targetPorts"},
		{pools, selector + ", targetPorts: [" + nine + "]", "targetPorts"},
		{pools, selector + ", targetPorts: [{number: 80}, {number: 80}]", "targetPorts"},
		{pools, selector + ", targetPorts: [{number: 0}]", "targetPorts[0].number"},
		{pools, selector + ", targetPorts: [{number: 65536}]", "targetPorts[0].number"},
		{pools, selector + ", " + ports + ", appProtocol: grpc", "appProtocol"},
		{pools, selector + ", " + ports + ", endpointPickerRef: {name: weir}", "endpointPickerRef"},
		{pools, selector + ", " + ports + ", endpointPickerRef: {port: {number: 1}}", "endpointPickerRef.name"},
		{
			pools, selector + ", " + ports + ", endpointPickerRef: {name: weir, port: {number: 1}, failureMode: Wait}",
			"failureMode",
		},
		{objectives, "priority: 1", "spec.poolRef"},
		{objectives, "priority: high, " + toPool, "priority"},
		{objectives, "priority: 1.5, " + toPool, "priority"},
		{objectives, "priority: 1, poolRef: {}", "poolRef.name"},
		{objectives, "priority: 1, poolRef: {name: ''}", "poolRef.name"},
		{rewrites, toPool, "spec.rules"},
		{rewrites, "rules: []", "spec.poolRef"},
		{rewrites, toPool + ", rules: [{matches: [{model: {type: Prefix, value: a}}]}]", "matches[0].model.type"},
		{rewrites, toPool + ", rules: [{matches: [{model: {value: ''}}]}]", "matches[0].model.value"},
		{rewrites, toPool + ", rules: [{matches: [{}]}]", "matches[0].model"},
		{rewrites, toPool + ", rules: [{targets: []}]", "targets"},
		{rewrites, toPool + ", rules: [{targets: [{weight: 1}]}]", "targets[0].modelRewrite"},
		{rewrites, toPool + ", rules: [{targets: [{modelRewrite: a, weight: 0}]}]", "targets[0].weight"},
		{rewrites, toPool + ", rules: [{targets: [{modelRewrite: a, weight: 1000001}]}]", "targets[0].weight"},
		{models, toPool, "spec.modelName"},
		{models, "modelName: a", "spec.poolRef"},
		{models, "modelName: a, criticality: Urgent, " + toPool, "criticality"},
		{models, "modelName: a, targetModels: [{name: b, weight: 1}, {name: c}], " + toPool, "targetModels"},
		{models, "modelName: a, targetModels: [{weight: 1}], " + toPool, "targetModels[0].name"},
		{models, "modelName: a, targetModels: [{name: b, weight: 0}], " + toPool, "targetModels[0].weight"},
	} {
		manifest := fmt.Sprintf("{%s, metadata: {name: refused}, spec: {%s}}", c.kind, c.spec)
		err := w.env.DryRun(t.Context(), w.namespace, manifest)
		if err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v; want an error about %s", manifest, err, c.field)
		}
	}
	const model = "{%s, metadata: {name: same}, spec: {modelName: %s, poolRef: {name: chat}}}"
	w.apply(fmt.Sprintf(model, models, "first"))
	err := w.env.TryApply(t.Context(), w.namespace, fmt.Sprintf(model, models, "second"))
	if err == nil || !strings.Contains(err.Error(), "spec.modelName") {
		t.Errorf("another modelName: %v", err)
	}
}

// Every kind has its own status: a writer of the spec need not be a writer of the status. Conditions are merged by
// type, so that several writers do not overwrite each other's.
func TestStatusIsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sample := range samples {
		w.apply(sample.given)
	}
	const old = "inference.networking.x-k8s.io"
	for _, c := range []struct {
		kind schema.GroupVersionResource
		name string
	}{
		{resource("llm-d.ai", "v1alpha2", "InferenceObjective"), "urgent"},
		{resource(old, "v1alpha2", "InferenceObjective"), "usual"},
		{resource("llm-d.ai", "v1alpha2", "InferenceModelRewrite"), "names"},
		{resource(old, "v1alpha2", "InferenceModelRewrite"), "names"},
		{resource(old, "v1alpha2", "InferenceModel"), "chat"},
	} {
		status := func(writer string) map[string]any { return map[string]any{"conditions": []any{condition(writer)}} }
		if got := w.writeStatus(c.kind, c.name, "Weir", status("Weir")); !strings.Contains(got, "Weir") {
			t.Errorf("%v %s: the status is %s", c.kind, c.name, got)
		}
		if got := w.writeStatus(c.kind, c.name, "Other", status("Other")); !strings.Contains(got, "Weir") {
			t.Errorf("%v %s: one writer has overwritten the other: %s", c.kind, c.name, got)
		}
	}
	pools := resource("inference.networking.k8s.io", "v1", "InferencePool")
	gateway := map[string]any{"parents": []any{map[string]any{
		"parentRef":  map[string]any{"kind": "Gateway", "name": "front", "namespace": "edge"},
		"conditions": []any{condition("Gateway")},
	}}}
	if got := w.writeStatus(pools, "whole", "Gateway", gateway); !strings.Contains(got, "Gateway") {
		t.Errorf("a pool's status is %s", got)
	}
}

func condition(kind string) map[string]any {
	return map[string]any{
		"type": kind, "status": "True", "reason": "Used", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
		"observedGeneration": 1,
	}
}

// writeStatus applies a status for a writer and returns the resulting status. It checks that the status cannot come
// through the object itself.
func (w *world) writeStatus(kind schema.GroupVersionResource, name, writer string, status map[string]any) string {
	w.t.Helper()
	client := w.env.Objects().Resource(kind).Namespace(w.namespace)
	object, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": map[string]any{"name": name},
		"status": status,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: writer, FieldValidation: metav1.FieldValidationStrict}
	object, err = client.Patch(w.t.Context(), name, types.MergePatchType, text, options)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := fmt.Sprint(object.Object["status"]); strings.Contains(got, writer) {
		w.t.Errorf("%v %s: the status came with the object: %s", kind, name, got)
	}
	object, err = client.Patch(w.t.Context(), name, types.ApplyPatchType, text, options, "status")
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(object.Object["status"])
}
