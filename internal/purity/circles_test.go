package purity

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// Circle returns files of a package that use each other in a circle, in order, each with a name used from the next
// file: "a.go uses f of b.go". It is empty if the files can be ordered so that each uses only later ones. Fields do not
// count, but their types do. Uses that depend on other packages' types do not count either.
func Circle(fset *token.FileSet, files []*ast.File) []string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: names{}, Error: func(error) {}}
	pkg, _ := conf.Check("package", fset, files, info)
	file := func(p token.Pos) string { return path.Base(fset.Position(p).Filename) }
	uses := map[string]map[string]string{} // by file and file used: a name
	for id, o := range info.Uses {
		_, method := o.(*types.Func)
		from, to := file(id.Pos()), file(o.Pos())
		if o.Pkg() != pkg || !method && o.Parent() != pkg.Scope() || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]string{}
		}
		if name := uses[from][to]; name == "" || o.Name() < name {
			uses[from][to] = o.Name()
		}
	}
	w := walk{uses: uses, done: map[string]bool{}}
	for _, f := range sortedKeys(uses) {
		if circle := w.from(f); circle != nil {
			return circle
		}
	}
	return nil
}

// walk looks for a circle.
type walk struct {
	uses map[string]map[string]string
	done map[string]bool // no circle goes through it
	way  []string
}

func (w *walk) from(f string) []string {
	if i := slices.Index(w.way, f); i >= 0 {
		circle := append(slices.Clone(w.way[i:]), f)
		var lines []string
		for i, at := range circle[1:] {
			lines = append(lines, strings.Join([]string{circle[i], "uses", w.uses[circle[i]][at], "of", at}, " "))
		}
		return lines
	}
	if w.done[f] {
		return nil
	}
	w.way = append(w.way, f)
	for _, next := range sortedKeys(w.uses[f]) {
		if circle := w.from(next); circle != nil {
			return circle
		}
	}
	w.way = w.way[:len(w.way)-1]
	w.done[f] = true
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
