package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/spelling"
)

// maxFallbacks is the most that a request's metadata names beside the chosen endpoint.
const maxFallbacks = 8

func (d Document) servingProblems(ps *Problems) {
	d.Responses.problems(ps)
	ps.optionalHeader("criticality.header", d.Criticality.Header)
	ps.optionalHeader("trustedHeaders.model", d.TrustedHeaders.Model)
	ps.optionalHeader("trustedHeaders.cost", d.TrustedHeaders.Cost)
	if d.Criticality.Metadata != "" {
		ps.metadataPath("criticality.metadata", d.Criticality.Metadata)
	}
	ps.headerNames("criticality.objectiveHeaders", d.Criticality.ObjectiveHeaders, maxObjectiveHeaders)
	ps.oneOf("criticality.default", d.Criticality.Default, d.criticalityNames())
	if d.Criticality.MaxClass != "" {
		ps.oneOf("criticality.maxClass", d.Criticality.MaxClass, d.criticalityNames())
	}
	ps.oneOf("requestBody", d.RequestBody, bodies)
	ps.oneOf("passOn", d.PassOn, passOns)
	seen := map[string]bool{}
	for i, path := range d.PassOnPaths {
		ps.unique(index("passOnPaths", i), path, seen)
		if path != "" && (path[0] != '/' || strings.ContainsAny(path, "?#")) {
			ps.add(index("passOnPaths", i), path, "must be a path as clients send it: from its first slash, without the query")
		}
	}
	d.Limits.problems(ps)
	d.Scheduling.problems(ps)
}

// maxObjectiveHeaders is how many headers may name an objective: each has a place in every request.
const maxObjectiveHeaders = 4

// headerNames checks a list of names of request headers.
func (ps *Problems) headerNames(path string, names []string, most int) {
	if len(names) > most {
		ps.add(path, shown(fmt.Sprintf("%d headers", len(names))), "must be at most %d", most)
	}
	seen := map[string]bool{}
	for i, name := range names {
		ps.headerName(index(path, i), name)
		ps.unique(index(path, i), strings.ToLower(name), seen)
	}
}

// optionalHeader checks the name of a request header that need not be given.
func (ps *Problems) optionalHeader(path, name string) {
	if name != "" {
		ps.headerName(path, name)
	}
}

func (r Responses) problems(ps *Problems) {
	ps.oneOf("responses.preset", r.Preset, presets)
	for _, reason := range slices.Sorted(maps.Keys(r.Status)) {
		path, status := join("responses.status", reason), r.Status[reason]
		if !slices.Contains(reasons, reason) {
			ps.add(path, reason, "must be one of %s%s", strings.Join(reasons, ", "), spelling.Suggest(reason, reasons))
		} else if status < 200 || status > 599 {
			ps.add(path, status, "must be a status from 200 to 599")
		}
	}
}

func (l Limits) problems(ps *Problems) {
	const at = "limits."
	if atLeast(ps, at+"maxBodyBytes", l.MaxBodyBytes, 1) {
		if l.MaxBodyBytes > maxBody {
			ps.add(at+"maxBodyBytes", l.MaxBodyBytes, "must be at most %d (1 GiB)", maxBody)
		} else if l.MaxBodyBytes > l.MaxBodyBytesTotal {
			ps.add(at+"maxBodyBytes", l.MaxBodyBytes, "must be at most maxBodyBytesTotal (%d)", l.MaxBodyBytesTotal)
		}
	}
	atLeast(ps, at+"maxBodyBytesTotal", l.MaxBodyBytesTotal, 1)
	if l.BodyTimeout <= 0 || l.BodyTimeout > Duration(time.Hour) {
		ps.add(at+"bodyTimeout", l.BodyTimeout, "must be above 0s and at most 1h")
	}
	atLeast(ps, at+"maxHeaderBytes", l.MaxHeaderBytes, 1)
	atLeast(ps, at+"maxFlows", l.MaxFlows, 1)
}

func (s Scheduling) problems(ps *Problems) {
	seen := map[string]bool{}
	for i, name := range s.Filters {
		path := index("scheduling.filters", i)
		ps.unique(path, name, seen)
		ps.oneOf(path, name, filters)
	}
	seen = map[string]bool{}
	if !slices.Contains(s.Filters, FilterReady) {
		ps.add("scheduling.filters", shown(fmt.Sprint(s.Filters)), "must contain %s", FilterReady)
	}
	for i, scorer := range s.Scorers {
		path := index("scheduling.scorers", i) + "."
		ps.unique(path+"name", scorer.Name, seen)
		ps.oneOf(path+"name", scorer.Name, scorers)
		within(ps, path+"weight", scorer.Weight, 1, 1000)
	}
	ps.oneOf("scheduling.picker", s.Picker, pickers)
	ps.oneOf("scheduling.tieBreak", s.TieBreak, endpointTieBreaks)
	within(ps, "scheduling.fallbacks", s.Fallbacks, 0, maxFallbacks)
}
