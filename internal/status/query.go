package status

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The largest and the default numbers of rows of each table.
const (
	MostRows   = 1000
	engineRows = 500
	flowRows   = 100
	otherRows  = 20
)

// Query selects and sorts the rows of a document.
type Query struct {
	// Engines, Flows and Rejections are the largest numbers of rows, 0 to MostRows.
	Engines, Flows, Rejections int
	// Engine and Flow are parts of the names of engines and flows, in any case; "" matches all.
	Engine, Flow string
	// Only is the name of the only flow wanted; "": all matching flows.
	Only string
	// SortEngines and SortFlows are keys of EngineOrders and FlowOrders.
	SortEngines, SortFlows string
}

// DefaultQuery returns the query of a document without parameters.
func DefaultQuery() Query {
	return Query{Engines: engineRows, Flows: flowRows, Rejections: otherRows, SortEngines: "health", SortFlows: "waiting"}
}

// EngineOrders and FlowOrders are the sort keys: names ascending, numbers descending; by health, engines that are down
// or fail come first.
var (
	EngineOrders = []string{"health", "endpoint", "fill", "rate", "failures", "service", "oldest"}
	FlowOrders   = []string{"waiting", "since", "in-flight", "rate", "rejections", "entitled", "attained", "flow"}
)

// ParseQuery reads the parameters of a request. An error names each wrong one.
func ParseQuery(v url.Values) (Query, error) { return ParseQueryFrom(DefaultQuery(), v) }

// ParseQueryFrom is ParseQuery with other defaults.
func ParseQueryFrom(q Query, v url.Values) (Query, error) {
	var errs []error
	for name := range v {
		if !slices.Contains(parameters, name) {
			errs = append(errs, fmt.Errorf("%s: unknown parameter; must be one of %s", name, strings.Join(parameters, ", ")))
		}
	}
	number := func(name string, to *int) {
		if !v.Has(name) {
			return
		}
		n, err := strconv.Atoi(v.Get(name))
		if err != nil || n < 0 || n > MostRows {
			errs = append(errs, fmt.Errorf("%s: %q: must be from 0 to %d", name, firstLine(v.Get(name)), MostRows))
			return
		}
		*to = n
	}
	order := func(name string, orders []string, to *string) {
		if !v.Has(name) {
			return
		}
		if !slices.Contains(orders, v.Get(name)) {
			errs = append(errs, fmt.Errorf("%s: %q: must be one of %s", name, firstLine(v.Get(name)), strings.Join(orders, ", ")))
			return
		}
		*to = v.Get(name)
	}
	number("engines", &q.Engines)
	number("flows", &q.Flows)
	number("rejections", &q.Rejections)
	order("sort-engines", EngineOrders, &q.SortEngines)
	order("sort-flows", FlowOrders, &q.SortFlows)
	for name, to := range map[string]*string{"engine": &q.Engine, "flow": &q.Flow, "only-flow": &q.Only} {
		if *to = v.Get(name); len(*to) > mostText {
			errs = append(errs, fmt.Errorf("%s: must have at most %d bytes", name, mostText))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return q, errors.Join(errs...)
}

// mostText is the length in bytes of the longest text to search for: an identity's. The links of a page repeat the
// text.
const mostText = 256

var parameters = []string{"engine", "engines", "flow", "flows", "only-flow", "rejections", "sort-engines", "sort-flows"}

// Values returns the query as parameters for ParseQuery.
func (q *Query) Values() url.Values {
	v := url.Values{
		"engines": {strconv.Itoa(q.Engines)}, "flows": {strconv.Itoa(q.Flows)}, "rejections": {strconv.Itoa(q.Rejections)},
		"sort-engines": {q.SortEngines}, "sort-flows": {q.SortFlows},
	}
	for name, value := range map[string]string{"engine": q.Engine, "flow": q.Flow, "only-flow": q.Only} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// MatchesFlow reports whether a flow is wanted.
func (q *Query) MatchesFlow(name string) bool {
	if q.Only != "" {
		return name == q.Only
	}
	return contains(name, q.Flow)
}

// MatchesEngine reports whether an engine is wanted.
func (q *Query) MatchesEngine(address string) bool { return contains(address, q.Engine) }

func contains(name, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(name), strings.ToLower(part))
}
