package extproc

import (
	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// compiled is a configuration compiled for streams. Immutable, except for the cache of replies.
type compiled struct {
	Config
	rules      *request.Rules
	rejections rejections
	replies    replies
	// readsBody is set if the usage is read from response bodies.
	readsBody bool
	sample    decision.Sample
}

// compile compiles a valid configuration.
func compile(cfg *Config) *compiled {
	rules := request.NewRules(&cfg.Config)
	return &compiled{
		Config: *cfg, rules: rules, rejections: newRejections(cfg.Responses),
		replies:   replies{rules: rules},
		sample:    decision.SampleOf(cfg.Sample),
		readsBody: cfg.Usage == UsageBody || cfg.Usage == UsageAuto && cfg.Cost.inTokens(),
	}
}

// status returns the HTTP status of an outcome.
func (c *compiled) status(o flowcontrol.Outcome) int { return c.rejections.status[o] }
