package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one line and what it becomes.
type mutant struct {
	dir      string // package directory, "pkg/stock"
	function string // "Take", or "Ledger.Take" for a method
	nth      int    // which of several equal lines of that function, from 0
	old, new string // without the indentation
}

// place is where a mutant's line is now.
type place struct {
	file string
	line int // from 0
}

// site is a mutant with its place.
type site struct {
	mutant
	place
}

// choose returns n mutants that build, at most one for a line: the same ones for the same sites and seed.
func choose(sites []site, n int, seed uint64, builds func(site) (bool, error)) ([]mutant, error) {
	random := rand.New(rand.NewPCG(seed, seed))
	random.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	taken := map[place]bool{} // one mutant for a line
	var chosen []mutant
	for _, s := range sites {
		if len(chosen) == n {
			break
		}
		if taken[s.place] {
			continue
		}
		ok, err := builds(s)
		if err != nil {
			return nil, err
		}
		if ok {
			taken[s.place] = true
			chosen = append(chosen, s.mutant)
		}
	}
	slices.SortFunc(chosen, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.function, b.function), cmp.Compare(a.old, b.old),
			cmp.Compare(a.nth, b.nth))
	})
	return chosen, nil
}

// find returns every mutant of the Go files below the directories, tests and generated files excepted.
func find(roots ...string) ([]site, error) {
	var sites []site
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			found, err := findIn(path)
			sites = append(sites, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return sites, nil
}

func findIn(path string) ([]site, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	lines := bytes.Split(source, []byte("\n"))
	var sites []site
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		first := files.Position(function.Pos()).Line - 1
		for _, e := range edits(function.Body) {
			from, to := files.Position(e.from), files.Position(e.to)
			if from.Line != to.Line {
				continue
			}
			at := from.Line - 1
			line := string(lines[at])
			old := strings.TrimSpace(line)
			changed := strings.TrimSpace(line[:from.Column-1] + e.text + line[to.Column-1:])
			nth := 0
			for _, other := range lines[first:at] {
				if strings.TrimSpace(string(other)) == old {
					nth++
				}
			}
			sites = append(sites, site{
				mutant: mutant{dir: filepath.ToSlash(filepath.Dir(path)), function: name(function), nth: nth, old: old, new: changed},
				place:  place{path, at},
			})
		}
	}
	return sites, nil
}

// name is the function's, with its receiver's type.
func name(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	kind := function.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if id, ok := kind.(*ast.Ident); ok {
		return id.Name + "." + function.Name.Name
	}
	return function.Name.Name
}

// edit replaces what stands between two positions.
type edit struct {
	from, to token.Pos
	text     string
}

// other is what an operator becomes.
var other = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.INC: token.DEC, token.DEC: token.INC, token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK,
}

func edits(body *ast.BlockStmt) []edit {
	var all []edit
	operator := func(at token.Pos, old token.Token) {
		if to, ok := other[old]; ok {
			all = append(all, edit{at, at + token.Pos(len(old.String())), to.String()})
		}
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BinaryExpr:
			operator(n.OpPos, n.Op)
		case *ast.IncDecStmt:
			operator(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			operator(n.TokPos, n.Tok)
			if n.Tok == token.ASSIGN {
				all = append(all, edit{n.Pos(), n.End(), "_ = 0"})
			}
		case *ast.BranchStmt:
			operator(n.TokPos, n.Tok)
		case *ast.ExprStmt:
			all = append(all, edit{n.Pos(), n.End(), "_ = 0"})
		case *ast.IfStmt:
			all = append(all, edit{n.Cond.Pos(), n.Cond.End(), "true"}, edit{n.Cond.Pos(), n.Cond.End(), "false"})
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				all = append(all, edit{n.OpPos, n.OpPos + 1, ""})
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				all = append(all, edit{n.Pos(), n.End(), strconv.FormatBool(n.Name == "false")})
			}
		case *ast.BasicLit:
			if value, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
				all = append(all, edit{n.Pos(), n.End(), strconv.Itoa(value + 1)})
			}
		}
		return true
	})
	return all
}
