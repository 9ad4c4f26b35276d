package scrape

import (
	"context"
	"encoding/json"
	"fmt"
)

// The paths at which engines state the number of requests that they run at once, by the engine's name. Each is tried if
// its predecessor has no answer with status 200.
var statedPaths = map[string][]string{
	sglang.String():   {"/server_info", "/get_server_info"},
	llamacpp.String(): {"/props"},
}

// Limits of a statement. SGLang's own default, which depends on its memory and is at least 2,048, is the size of its
// tables, not the number of requests that fit.
const (
	mostStated  = 65536
	mostDefault = 1024
)

// stated gets an engine's stated number of requests that it runs at once, or 0 if it states none. The engine is one of
// statedPaths.
func (f *fetcher) stated(ctx context.Context, engine, root string) (slots int32, err error) {
	for _, path := range statedPaths[engine] {
		var text []byte
		if text, err = f.text(ctx, root+path); reasonOf(err) == BadStatus {
			continue
		}
		if err != nil {
			return 0, err
		}
		return statedBy(text)
	}
	return 0, err
}

// statedBy returns the number of requests in a statement of SGLang or llama.cpp.
func statedBy(text []byte) (int32, error) {
	var s struct {
		Total  *float64 `json:"total_slots"`
		Limit  *float64 `json:"max_running_requests"` // set by the operator
		States []struct {
			Limit *float64 `json:"effective_max_running_requests_per_dp"`
		} `json:"internal_states"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, &failure{reason: BadValue, text: "the engine's statement: " + err.Error()}
	}
	whole := func(key string, n *float64) (int32, error) {
		if *n < 1 || *n > mostStated || *n != float64(int32(*n)) {
			return 0, &failure{reason: BadValue, text: fmt.Sprintf("%s: %g: must be from 1 to %d", key, *n, mostStated)}
		}
		return int32(*n), nil
	}
	switch {
	case s.Total != nil:
		return whole("total_slots", s.Total)
	case s.Limit != nil:
		return whole("max_running_requests", s.Limit)
	}
	sum := 0.0
	for _, state := range s.States {
		if state.Limit == nil {
			return 0, nil
		}
		sum += *state.Limit
	}
	if sum < 1 || sum > mostDefault*float64(len(s.States)) {
		return 0, nil
	}
	return whole("effective_max_running_requests_per_dp", &sum)
}

// states reads a target's engine's statement of its slots. An unreadable answer changes nothing.
func (s *Scraper) states(ctx context.Context, t *target) {
	if statedPaths[t.engine] == nil {
		t.slots = 0
		return
	}
	bounded, stop := context.WithTimeout(ctx, s.config.Timeout)
	defer stop()
	s.begins(t, stop)
	slots, err := s.stated(bounded, t.engine, s.root(t.address))
	switch {
	case err == nil:
		t.slots = slots
	case reasonOf(err) == BadValue && !t.absurd:
		t.absurd = true
		s.log.Info("WARNING: the slots that the endpoint's engine states cannot be read, and do not count", "address", t.address,
			"engine", t.engine, "error", err.Error())
	default:
		s.log.V(1).Info("the slots of the endpoint's engine cannot be read", "address", t.address, "error", err.Error())
	}
}
