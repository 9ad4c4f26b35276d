package kubeenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// fieldManager is the owner of fields applied by tests.
const fieldManager = "kubeenv"

// Apply applies YAML documents by server-side apply with strict field validation: unknown and duplicate fields are
// errors. A namespaced object that names no namespace goes to the given one.
func (e *Env) Apply(t *testing.T, namespace, manifests string) {
	t.Helper()
	if err := e.TryApply(t.Context(), namespace, manifests); err != nil {
		t.Fatal(err)
	}
}

// TryApply is Apply for manifests that the apiserver may refuse. The error names the first refused object; the objects
// before it are applied.
func (e *Env) TryApply(ctx context.Context, namespace, manifests string) error {
	return e.apply(ctx, namespace, manifests, nil)
}

// DryRun asks the apiserver whether it would accept the manifests, without storing them. The error names all refused
// objects.
func (e *Env) DryRun(ctx context.Context, namespace, manifests string) error {
	return e.apply(ctx, namespace, manifests, []string{metav1.DryRunAll})
}

func (e *Env) apply(ctx context.Context, namespace, manifests string, dryRun []string) error {
	objects, err := parse(manifests)
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range objects {
		client, err := e.clientOf(object, namespace)
		if err == nil {
			var text []byte
			if text, err = object.MarshalJSON(); err == nil {
				force := true
				_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
					FieldManager: fieldManager, Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
				})
			}
		}
		if err == nil {
			continue
		}
		err = fmt.Errorf("kubeenv: %s %s: %w", object.GetKind(), object.GetName(), err)
		if dryRun == nil {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// parse returns the objects of YAML documents, without empty ones.
func parse(manifests string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("kubeenv: manifest: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// clientOf returns the client for an object's kind, in its namespace or else the given one.
func (e *Env) clientOf(object *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := e.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) { // its CRD may be newer than the known kinds
		e.mapper.Reset()
		mapping, err = e.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return e.objects.Resource(mapping.Resource), nil
	}
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	return e.objects.Resource(mapping.Resource).Namespace(namespace), nil
}

// InstallCRDs applies the CustomResourceDefinitions of the directory's *.yaml files and returns when the apiserver
// serves them.
func (e *Env) InstallCRDs(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no CRDs in %s", dir)
	}
	var installed []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definitions, err := parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, definition := range definitions {
			// The status of a published file is a left-over of its generator.
			unstructured.RemoveNestedField(definition.Object, "status")
			text, err := definition.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			e.Apply(t, "", string(text))
			installed = append(installed, definition)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for _, definition := range installed {
		if err := e.awaitServed(ctx, definition); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitServed waits until the apiserver lists a definition's objects, a little after the definition is established.
func (e *Env) awaitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if served, _ := fields["served"].(bool); !served {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(group + "/" + name)
		object.SetKind(kind)
		for {
			client, err := e.clientOf(object, "default")
			if err == nil {
				if _, err = client.List(ctx, metav1.ListOptions{Limit: 1}); err == nil {
					break
				}
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("kubeenv: %s is not served: %w", definition.GetName(), err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}
