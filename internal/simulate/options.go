package simulate

import (
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/pkg/body"
)

// BytesPerToken is the length of a token of a prompt's text, in bytes.
const BytesPerToken = body.BytesPerToken

// DefaultBlock is the default number of tokens in a block of a KV cache, from Mooncake's traces.
const DefaultBlock = 512

// Engines are equal engines of the pool.
type Engines struct {
	Count  int
	Engine engine.Config
}

// Options are the options of one simulation, without its requests.
type Options struct {
	// Name is the configuration's name, for the report.
	Name string
	// Config is the configuration, valid.
	Config config.Document
	// Engines are the pool's engines, in order. At least one.
	Engines []Engines
	// Weights are weights of flows, which override the configuration's.
	Weights map[string]config.Decimal
	// Seed determines all random values.
	Seed uint64
	// Peer, if not nil, chooses engines instead of Weir; Config then has neither queue nor affinity.
	Peer *Peer
	// FirstTokens is set if Weir sees first tokens: a first-token gate, for example.
	FirstTokens bool
	// Estimates determine the charges of requests before their end.
	Estimates Estimates
	// Service, if above 0, is the time in which requests arrive; the report then has ServiceFigures.
	Service time.Duration
	// Record makes a recording like epp's, for the report.
	Record bool
	// Progress, if not nil, is called from time to time with the rough part of the requests that have arrived.
	Progress func(part float64)
}

// DefaultEngines returns the engines of the routing figures.
func DefaultEngines(count, block int) Engines {
	cfg := engine.Reference()
	cfg.Blocks, cfg.BlockSize = cfg.Blocks*cfg.BlockSize/block, block
	return Engines{Count: count, Engine: cfg}
}
