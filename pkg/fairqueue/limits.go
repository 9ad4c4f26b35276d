package fairqueue

import (
	"fmt"
	"slices"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Prompt is the length of a request's prompt in tokens, as known at its arrival, and the largest number of them cached
// at one of its backends. Both are from 0 to MaxCost; Cached counts up to Raw.
type Prompt struct{ Raw, Cached int32 }

// PromptOf returns the prompt with these numbers of tokens, clamped to the range.
func PromptOf(raw, cached int64) Prompt {
	p := Prompt{Raw: int32(max(0, min(raw, int64(MaxCost))))}
	p.Cached = int32(max(0, min(cached, int64(p.Raw))))
	return p
}

// Uncached returns the number of its tokens that remain to be read.
func (p Prompt) Uncached() int64 { return int64(p.Raw) - int64(p.cached()) }

func (p Prompt) cached() int32 { return max(0, min(p.Cached, p.Raw)) }

// ClassLimits bound the waiting requests of a class. Each limit is multiplied by the number of backends; nil means no
// limit, and 0 means that no request waits. An arrival is rejected once a limit is reached, so the request that crosses
// it is accepted.
type ClassLimits struct {
	// Requests is the number of requests, RawTokens the sum of their prompts' tokens, and CachedTokens the sum of the
	// cached ones, each 0 to MaxClassLimit per backend. They are checked in this order.
	Requests, RawTokens, CachedTokens *int64
}

// MaxClassLimit is the largest limit of a class for each backend.
const MaxClassLimit = 1 << 40

// LimitKind is the quantity that a limit of a class bounds. Its string never changes: clients and metrics see it.
type LimitKind uint8

// The kinds, in the order in which they are checked.
const (
	LimitRequests LimitKind = iota
	LimitRawTokens
	LimitCachedTokens

	// NumLimits is the number of kinds, for tables indexed by LimitKind.
	NumLimits = iota
)

// String returns Dynamo's name of the kind.
func (k LimitKind) String() string {
	return [NumLimits]string{"requests", "raw_isl_tokens", "cached_tokens"}[k]
}

// of returns the limit of a kind.
func (l *ClassLimits) of(k LimitKind) *int64 {
	return [NumLimits]*int64{l.Requests, l.RawTokens, l.CachedTokens}[k]
}

// LimitsClasses reports whether any class has a limit.
func (c *Config) LimitsClasses() bool {
	return slices.ContainsFunc(c.Classes, func(cc ClassConfig) bool { return cc.Limits != ClassLimits{} })
}

func (l *ClassLimits) check(ps *invalid.Problems, at invalid.Path) {
	for k, name := range [NumLimits]string{"Requests", "RawTokens", "CachedTokens"} {
		if most := l.of(LimitKind(k)); most != nil {
			invalid.Within(ps, at.At(name), *most, 0, MaxClassLimit)
		}
	}
}

// LimitError is the error for a request that would wait in a class with a reached limit. It is an ErrTooManyFlows.
type LimitError struct {
	// Ring and Class name the class.
	Ring, Class string
	// Limit is the kind of the limit, Current the waiting amount, and Most the limit for all backends.
	Limit         LimitKind
	Current, Most int64
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("fairqueue: class %q: limit of %s reached (current %d, limit %d)", e.Class, e.Limit, e.Current, e.Most)
}

// Unwrap returns ErrTooManyFlows.
func (e *LimitError) Unwrap() error { return ErrTooManyFlows }

// amounts are the waiting amounts in a class, by LimitKind.
type amounts [NumLimits]int64

// count adds a request, or subtracts it.
func (a *amounts) count(r *Request, by int64) {
	a[LimitRequests] += by
	if r.Path != nil {
		a[LimitRawTokens] += by * int64(max(0, r.Path.Prompt.Raw))
		a[LimitCachedTokens] += by * int64(r.Path.Prompt.cached())
	}
}

// Limited returns the *LimitError for an unqueued request if its class has reached a limit with this number of
// backends; otherwise nil.
func (q *FairRequestQueue) Limited(r *Request, backends int) error {
	c := q.tierOf(r.Tier).classOf(r)
	for k := range LimitKind(NumLimits) {
		limit := c.config.Limits.of(k)
		if limit == nil {
			continue
		}
		if most := *limit * int64(max(0, min(backends, mostBackends))); c.amounts[k] >= most {
			return &LimitError{Ring: c.config.Ring, Class: c.config.Name, Limit: k, Current: c.amounts[k], Most: most}
		}
	}
	return nil
}

// mostBackends is the largest number of backends that counts, so that limits do not overflow.
const mostBackends = 1 << 20
