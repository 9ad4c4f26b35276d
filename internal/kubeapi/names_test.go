package kubeapi

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// The objects that name objectives and models keep the meaning of a user's text, and their copies share nothing with
// them.
func TestNamingObjects(t *testing.T) {
	const meta = `"metadata":{"name":"n","labels":{"a":"b"}},"unknown":true,
		"status":{"conditions":[{"type":"Accepted","status":"False","reason":"Invalid","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
	group := "example.com"
	priority, weight := int32(-3), int32(7)
	tests := []struct {
		text string
		into runtime.Object
		want any
	}{
		{
			text: `{` + meta + `,"spec":{"poolRef":{"group":"example.com","kind":"K","name":"chat"},"priority":-3}}`,
			into: &InferenceObjective{},
			want: InferenceObjectiveSpec{PoolRef: PoolRef{Group: &group, Kind: "K", Name: "chat"}, Priority: &priority},
		},
		{
			text: `{` + meta + `,"spec":{"poolRef":{"name":"chat"},"modelName":"m","criticality":"Critical","targetModels":[{"name":"a","weight":7},{"name":"b"}]}}`,
			into: &InferenceModel{},
			want: InferenceModelSpec{
				PoolRef: PoolRef{Name: "chat"}, ModelName: "m", Criticality: "Critical",
				TargetModels: []TargetModel{{Name: "a", Weight: &weight}, {Name: "b"}},
			},
		},
		{
			text: `{` + meta + `,"spec":{"poolRef":{"name":"chat"},"rules":[{"matches":[{"model":{"type":"Exact","value":"m"}}],
				"targets":[{"modelRewrite":"a","weight":7}]},{"targets":[{"modelRewrite":"b"}]}]}}`,
			into: &InferenceModelRewrite{},
			want: InferenceModelRewriteSpec{PoolRef: PoolRef{Name: "chat"}, Rules: []RewriteRule{
				{Matches: []RewriteMatch{{Model: ModelMatch{Type: "Exact", Value: "m"}}}, Targets: []RewriteTarget{{ModelRewrite: "a", Weight: &weight}}},
				{Targets: []RewriteTarget{{ModelRewrite: "b"}}},
			}},
		},
	}
	for _, test := range tests {
		if err := json.Unmarshal([]byte(test.text), test.into); err != nil {
			t.Fatal(err)
		}
		object := reflect.ValueOf(test.into).Elem()
		if got := object.FieldByName("Spec").Interface(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("decoded as %+v", got)
		}
		status := object.FieldByName("Status").Interface().(Status)
		if len(status.Conditions) != 1 || status.Conditions[0].Type != ConditionAccepted || status.Conditions[0].Reason != "Invalid" {
			t.Errorf("conditions %+v", status.Conditions)
		}
		copied := test.into.DeepCopyObject()
		if !reflect.DeepEqual(copied, test.into) {
			t.Errorf("the copy %+v differs from %+v", copied, test.into)
		}
		noneShared(t, object.Type().Name(), object, reflect.ValueOf(copied).Elem())
	}
}

// Both groups are known, and each list copies its items.
func TestNamingLists(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, gvk := range []struct{ group, kind string }{
		{"llm-d.ai", "InferenceObjectiveList"},
		{"inference.networking.x-k8s.io", "InferenceObjectiveList"},
		{"llm-d.ai", "InferenceModelRewriteList"},
		{"inference.networking.x-k8s.io", "InferenceModelRewriteList"},
		{"inference.networking.x-k8s.io", "InferenceModelList"},
	} {
		gv := NamesGroupVersion
		if gv.Group = gvk.group; gv.Version != "v1alpha2" {
			t.Errorf("version %s", gv.Version)
		}
		list, err := scheme.New(gv.WithKind(gvk.kind))
		if err != nil {
			t.Error(err)
			continue
		}
		items := reflect.ValueOf(list).Elem().FieldByName("Items")
		items.Set(reflect.MakeSlice(items.Type(), 1, 1))
		copied := list.DeepCopyObject()
		if !reflect.DeepEqual(copied, list) {
			t.Errorf("the copy %+v differs from %+v", copied, list)
		}
		noneShared(t, gvk.kind, reflect.ValueOf(list).Elem(), reflect.ValueOf(copied).Elem())
	}
}

// noneShared searches two equal values for shared pointers, slices and maps.
func noneShared(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.IsNil() || a.Kind() == reflect.Slice && a.Len() == 0 {
			return
		}
		if a.Pointer() == b.Pointer() && a.Type().String() != "*time.Location" {
			t.Errorf("%s is shared with the copy", path)
		}
	default:
	}
	switch a.Kind() {
	case reflect.Pointer:
		noneShared(t, path, a.Elem(), b.Elem())
	case reflect.Slice:
		for i := range a.Len() {
			noneShared(t, path+"[]", a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() {
				noneShared(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
			}
		}
	default: // a value
	}
}
