package purity

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// imports are the permitted imports of the core; from those in impure, only some names.
var imports = []string{
	"cmp", "errors", "fmt", "iter", "maps", "math", "math/bits", "math/rand/v2",
	"net/netip", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
	"github.com/weir-epp/weir/internal/heap",
	"github.com/weir-epp/weir/internal/splitmix",
	"github.com/weir-epp/weir/pkg/invalid", // values describing the problems of a Config
}

// impure are the names of permitted packages that read a clock, wait, or access the outside world.
var impure = map[string][]string{
	"time": {
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Timer", "Ticker", "Local",
		"LoadLocation",
	},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// pure are the only permitted names of an otherwise impure package: a random source is an argument.
var pure = map[string][]string{
	"math/rand/v2": {"Rand", "Source", "New", "NewPCG", "NewChaCha8", "PCG", "ChaCha8", "Zipf", "NewZipf"},
}

// constant are the functions permitted to initialise a package-level variable: their results never change.
var constant = []string{"errors.New", "regexp.MustCompile"}

// Problems returns the impurities of the package of these files, in order of position. Besides the standard library the
// package may import the packages in below.
func Problems(fset *token.FileSet, files []*ast.File, below ...string) []string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	c := &checker{below: below, fset: fset, info: info}
	// Only names must be resolved, so errors about other packages' types are ignored.
	conf := types.Config{Importer: names{}, Error: func(error) {}}
	_, _ = conf.Check("core", fset, files, c.info)
	for _, f := range files {
		for _, i := range f.Imports {
			c.imported(i)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				c.packageLevel(g)
			}
		}
		ast.Inspect(f, c.node)
	}
	slices.Sort(c.problems)
	return c.problems
}

type checker struct {
	below    []string
	fset     *token.FileSet
	info     *types.Info
	problems []string
}

func (c *checker) bad(n ast.Node, format string, args ...any) {
	p := c.fset.Position(n.Pos())
	c.problems = append(c.problems, fmt.Sprintf("%s:%04d: ", path.Base(p.Filename), p.Line)+fmt.Sprintf(format, args...))
}

func (c *checker) imported(i *ast.ImportSpec) {
	name := strings.Trim(i.Path.Value, `"`)
	switch {
	case slices.Contains(c.below, name):
	case !slices.Contains(imports, name):
		c.bad(i, "import of %s", name)
	case i.Name != nil && (i.Name.Name == "." || i.Name.Name == "_"):
		c.bad(i, "import of %s as %s", name, i.Name.Name)
	}
}

// packageLevel permits a variable that is in effect a constant: it has an initial value, only errors.New and
// regexp.MustCompile may be called for it, and nothing writes to it (see written).
func (c *checker) packageLevel(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		if len(v.Values) == 0 {
			c.bad(v, "package-level variable %s without a value", v.Names[0].Name)
		}
		for _, value := range v.Values {
			ast.Inspect(value, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok && !slices.Contains(constant, types.ExprString(call.Fun)) {
					c.bad(v, "package-level variable %s from a call of %s", v.Names[0].Name, types.ExprString(call.Fun))
				}
				_, isFunc := n.(*ast.FuncLit)
				return !isFunc
			})
		}
	}
}

func (c *checker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.bad(n, "go statement")
	case *ast.ChanType:
		c.bad(n, "channel type")
	case *ast.SelectStmt:
		c.bad(n, "select statement")
	case *ast.SendStmt:
		c.bad(n, "channel send")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.bad(n, "channel receive")
		}
		if n.Op == token.AND {
			c.written(n.X)
		}
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			c.written(x)
		}
	case *ast.IncDecStmt:
		c.written(n.X)
	case *ast.RangeStmt:
		c.written(n.Key)
		c.written(n.Value)
	case *ast.CallExpr:
		c.called(n)
	case *ast.SelectorExpr:
		c.selected(n)
	}
	return true
}

// written reports a problem if x is a package-level variable or part of one.
func (c *checker) written(x ast.Expr) {
	switch e := x.(type) {
	case *ast.Ident:
		if v, ok := c.info.Uses[e].(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			c.bad(x, "write to the package-level variable %s", e.Name)
		}
	case *ast.SelectorExpr:
		c.written(e.X)
	case *ast.IndexExpr:
		c.written(e.X)
	case *ast.SliceExpr:
		c.written(e.X)
	case *ast.StarExpr:
		c.written(e.X)
	case *ast.ParenExpr:
		c.written(e.X)
	}
}

// called checks calls of built-in functions, some of which write or print.
func (c *checker) called(call *ast.CallExpr) {
	name, ok := call.Fun.(*ast.Ident)
	if !ok {
		return
	}
	if _, ok := c.info.Uses[name].(*types.Builtin); !ok {
		return
	}
	switch name.Name {
	case "clear", "delete", "copy":
		c.written(call.Args[0])
	case "close", "print", "println":
		c.bad(call, "call of %s", name.Name)
	}
}

// selected checks a name of another package.
func (c *checker) selected(s *ast.SelectorExpr) {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return
	}
	pkg, ok := c.info.Uses[x].(*types.PkgName)
	if !ok {
		return
	}
	from := pkg.Imported().Path()
	if only, ok := pure[from]; slices.Contains(impure[from], s.Sel.Name) || ok && !slices.Contains(only, s.Sel.Name) {
		c.bad(s, "use of %s.%s", from, s.Sel.Name)
	}
}

// names is an importer that knows packages by name only.
type names struct{}

func (names) Import(from string) (*types.Package, error) {
	name := path.Base(from)
	if name == "v2" {
		name = path.Base(path.Dir(from))
	}
	p := types.NewPackage(from, name)
	p.MarkComplete()
	return p, nil
}
