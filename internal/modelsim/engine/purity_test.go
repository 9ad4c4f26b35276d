package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The core has no goroutine and no channel, and uses time and randomness as values only.
func TestPurity(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	forbidden := map[string]bool{
		"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true, "time.After": true,
		"time.AfterFunc": true, "time.NewTimer": true, "time.NewTicker": true, "time.Tick": true,
		"rand.IntN": true, "rand.Float64": true, "rand.N": true,
	}
	fset := token.NewFileSet()
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(fset, file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range tree.Imports {
			switch imported.Path.Value {
			case `"errors"`, `"fmt"`, `"math"`, `"math/rand/v2"`, `"slices"`, `"sort"`, `"time"`,
				`"github.com/weir-epp/weir/internal/heap"`:
			default:
				t.Errorf("%s: import of %s", fset.Position(imported.Pos()), imported.Path.Value)
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: %T in the core", fset.Position(n.Pos()), n)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && forbidden[x.Name+"."+n.Sel.Name] {
					t.Errorf("%s: %s.%s in the core", fset.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}
