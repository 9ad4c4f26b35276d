package config

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A problem that depends on the waiters of a running controller is reported by the document's keys, too.
func TestRefusedByARunningController(t *testing.T) {
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	// Each generation of tiers has its own names.
	generation := func(name string) *Document {
		text := "requestQueueController: { enqueueAll: true }\nfairRequestQueue: { capacityMode: shared }\nreplaceTiers: true\ntiers:\n"
		for i := range 32 {
			text += fmt.Sprintf("- { name: %s-%d, minPriority: %d }\n", name, i, 100-i)
		}
		d, err := Load(source("apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		return &d
	}
	first := generation("first")
	controller, err := flowcontrol.New(first.FlowcontrolConfig(), placement.On(scheduling.NewBoard(scheduler, nil)), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiters sync.WaitGroup
	defer waiters.Wait()
	defer cancel()
	waitInEachTier := func() {
		for tier := range 32 {
			waits := make(chan error, 2)
			waiters.Go(func() {
				_, err := controller.TryEnqueue(ctx, &flowcontrol.Request{
					Flow: "f", Tier: tier, OnQueued: func(time.Duration) { waits <- nil },
				})
				waits <- err
			})
			if err := <-waits; err != nil {
				t.Fatalf("tier %d: %v", tier, err)
			}
		}
	}
	waitInEachTier()
	if err := controller.Reconfigure(generation("second").FlowcontrolConfig(), nil); err != nil {
		t.Fatal(err)
	}
	waitInEachTier()
	third := generation("third")
	err = third.Refused(controller.Reconfigure(third.FlowcontrolConfig(), nil))
	if want := "tiers: 96 tiers with those that still drain: must be at most 64"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Messages of the deciding packages name no key: these packages know their own fields, and only this package knows the
// document.
func TestPackagesKnowNoKeys(t *testing.T) {
	for _, name := range []string{"dispatch", "estimate", "fairqueue", "flowcontrol", "scheduling", "stock"} {
		dir := filepath.Join("..", "..", "pkg", name)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					for _, k := range keys() {
						if key, _, _ := strings.Cut(k.path, "[]"); strings.Contains(key, ".") && strings.Contains(text.Value, key) {
							t.Errorf("%s names the key %s", fset.Position(text.Pos()), key)
						}
					}
				}
				return true
			})
		}
	}
}
