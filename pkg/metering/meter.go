package metering

import (
	"sync"

	"github.com/weir-epp/weir/pkg/estimate"
)

// Meter estimates, charges and learns for all requests. The zero value needs Configure. It is safe for concurrent use.
type Meter struct {
	mu        sync.Mutex // guards all
	estimator *estimate.Estimator
	seen      seen
}

// Configure changes the configuration, which must be valid. Learned values remain.
func (m *Meter) Configure(cfg estimate.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.estimator == nil {
		m.estimator = estimate.New(cfg)
		return
	}
	m.estimator.Configure(cfg)
}

// Begin charges a request its estimate. cfg applies to the charge until its end. With looseLimit r.MaxOutput bounds the
// estimate only.
func (m *Meter) Begin(r estimate.Request, looseLimit bool, cfg *estimate.Config) *Charge {
	c := &Charge{request: r, cfg: cfg}
	m.mu.Lock()
	c.estimated = m.estimator.Estimate(&c.request)
	m.mu.Unlock()
	if looseLimit {
		c.request.MaxOutput = estimate.Unknown
	}
	return c
}
