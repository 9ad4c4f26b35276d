package simulate

import (
	"github.com/weir-epp/weir/internal/splitmix"
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// affinity is the prefix index, used as extproc uses it. Nil: the configuration has none.
type affinity struct {
	index   *prefix.Index
	scope   request.AffinityScope
	block   int // bytes of text for each hash of a request
	watched bool
	ids     []scheduling.EndpointID
}

// newAffinity returns a configuration's affinity for the engines; nil unless it is by prefixes. watched means that Weir
// sees first tokens.
func newAffinity(cfg *request.Affinity, engines []prefix.Endpoint, blockTokens int, watched bool) *affinity {
	if cfg.Mode != request.AffinityPrefix {
		return nil
	}
	a := &affinity{index: prefix.New(prefix.DefaultConfig()), scope: cfg.Scope, block: blockTokens * BytesPerToken, watched: watched}
	a.index.SetEndpoints(engines)
	return a
}

// prompt returns a request's prompt in the index's form: blocks of package body's length, of the text behind its
// hashes. tokens is the prompt's estimated length.
func (a *affinity) prompt(r *Request, tokens int64) body.Blocks {
	p := body.Blocks{Bytes: uint32(r.Prompt * BytesPerToken), Tokens: tokens, Flow: textHash(r.Flow)}
	key := splitmix.Mix(1)
	if a.scope == request.ScopeFlow {
		key = textHash(r.Flow)
	}
	hashed, end := 0, 0 // hashes of the request, bytes of its text
	for {
		size := body.BlockSize(len(p.Keys))
		if end += size; size == 0 || end > r.Prompt*BytesPerToken {
			break
		}
		upTo := (end + a.block - 1) / a.block
		if upTo > len(r.Blocks) {
			break
		}
		for ; hashed < upTo; hashed++ {
			key = splitmix.Mix(key ^ r.Blocks[hashed])
		}
		p.Keys, p.Ends = append(p.Keys, splitmix.Mix(key+uint64(end))), append(p.Ends, uint32(end))
	}
	return p
}

// rate looks up the endpoints with a request's prompt, before the request is offered.
func (a *affinity) rate(v *visit, query *scheduling.Query) {
	tokens := int64(v.asked.Prompt)
	if v.charge != nil && v.charge.Estimated().Input > 0 {
		tokens = v.charge.Estimated().Input
	}
	v.prompt = a.prompt(&v.asked, tokens)
	if len(v.prompt.Keys) == 0 {
		return
	}
	a.ids = query.Ready(a.ids[:0])
	ratings := a.index.Match(&v.prompt, a.ids)
	ratings.Watched = a.watched
	query.Rate(&ratings)
	v.query = query
}

// granted notes that a request goes to its granted endpoint, and returns the number of its tokens that a charge may
// count as cached there.
func (a *affinity) granted(v *visit) (cached int64) {
	if v.query == nil {
		return 0
	}
	v.placed = a.index.Place(&v.prompt, v.query.Ratings(), v.query.Placed())
	return v.placed.Believed()
}

// failed removes a prompt that no engine has read to its end.
func (a *affinity) failed(v *visit) {
	if v.query != nil {
		a.index.TakeBack(v.placed)
	}
}

// reported notes the cached tokens reported by an engine, if Weir reads usage.
func (a *affinity) reported(v *visit, cached int, by extproc.UsageWay) {
	if v.query != nil && by != extproc.UsageNone {
		a.index.Report(v.placed, int64(cached))
	}
}
