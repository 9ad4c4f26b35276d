package frontpage

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/internal/status"
)

// DefaultQuery returns the query of a page without parameters: fewer engines than in a document, those with problems
// first.
func DefaultQuery() status.Query {
	q := status.DefaultQuery()
	q.Engines, q.Flows = 100, 50
	return q
}

// values returns this page's parameters that differ from their defaults. pairs of names and values replace some of
// them; "" stands for the default.
func (p *Page) values(pairs ...string) url.Values {
	q := DefaultQuery()
	all, usual := p.Query.Values(), q.Values()
	all.Set("refresh", strconv.Itoa(p.Refresh))
	usual.Set("refresh", strconv.Itoa(Refresh))
	for pair := range slices.Chunk(pairs, 2) {
		all.Set(pair[0], pair[1])
	}
	maps.DeleteFunc(all, func(name string, value []string) bool { return value[0] == "" || slices.Equal(value, usual[name]) })
	return all
}

// link returns a link to this page with other parameters.
func (p *Page) link(pairs ...string) string {
	v := p.values(pairs...)
	if len(v) == 0 {
		return "/"
	}
	return "/?" + v.Encode()
}

// kept returns the parameters kept by a search. The resulting page refreshes itself.
func (p *Page) kept() (all []field) {
	v := p.values()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if !slices.Contains([]string{"engine", "flow", "only-flow", "refresh"}, name) {
			all = append(all, field{name, strings.Join(v[name], "")})
		}
	}
	return all
}
