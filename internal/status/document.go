package status

import "time"

// Schema is the version of the document.
const Schema = 1

// Document is the state of one epp.
type Document struct {
	Schema  int       `json:"schema"`
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	// Healthy is true if there are no Reasons against it.
	Healthy bool     `json:"healthy"`
	Reasons []Reason `json:"reasons"`
	Pool    Pool     `json:"pool"`
	// WindowSeconds is the length of the time that all rates and attained shares are about; 0: they are not known yet.
	WindowSeconds float64  `json:"windowSeconds"`
	Tiers         []Tier   `json:"tiers"`
	Engines       []Engine `json:"engines"`
	Flows         []Flow   `json:"flows"`
	// Rejections are the last ones, the newest first.
	Rejections []Rejection `json:"rejections"`
	// LeftOut are the numbers of rows that match the query and are not there.
	LeftOut LeftOut `json:"leftOut"`
}

// LeftOut are numbers of rows.
type LeftOut struct {
	Engines    int `json:"engines"`
	Flows      int `json:"flows"` // of those that are known without a look at every waiting request
	Rejections int `json:"rejections"`
}

// Reason is a reason for which an epp is not healthy. ID is one word that never changes, Text is for people.
type Reason struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Pool is the state of the whole.
type Pool struct {
	Name     string `json:"name,omitempty"` // in Kubernetes
	Profile  string `json:"profile"`
	Ready    bool   `json:"ready"`
	Lacks    string `json:"lacks,omitempty"` // for being ready
	Draining bool   `json:"draining"`
	// Hashed is true if names of flows are shown as hashes (--hash-flow-keys).
	Hashed bool `json:"flowKeysHashed"`
	// Leads is true without an election, too. Leader is the pod that leads, if there is an election and it is known.
	Leads  bool   `json:"leads"`
	Leader string `json:"leader,omitempty"`

	Engines      int `json:"engines"`
	ReadyEngines int `json:"readyEngines"`
	// Waiting is the number of waiting requests, of WaitingFlows flows; the queue takes up to QueueCapacity.
	Waiting       int `json:"waiting"`
	WaitingFlows  int `json:"waitingFlows"`
	QueueCapacity int `json:"queueCapacity"`
	// Stock is the number of leases held; the bounds are absent if it is unbounded.
	Stock      int      `json:"stock"`
	LowerBound *float64 `json:"lowerBound,omitempty"`
	UpperBound *float64 `json:"upperBound,omitempty"`
	// Elsewhere is what other replicas have in flight.
	Elsewhere int64 `json:"elsewhere"`
	Streams   int   `json:"streams"`
	// Requests and Rejected are the requests that have ended, and those of them that were not served, by second.
	Requests float64 `json:"requestsPerSecond"`
	Rejected float64 `json:"rejectionsPerSecond"`
}

// Tier is the state of one tier.
type Tier struct {
	Name       string `json:"tier"`
	Waiting    int    `json:"waiting"`
	Limit      int    `json:"limit"` // of waiting requests
	InFlight   int    `json:"inFlight"`
	Reserved   int    `json:"reserved"`
	Displaced  uint64 `json:"displaced"`
	Promotions uint64 `json:"promotions"`
	// Waits is the number of requests that ended in the last five minutes after they had waited; quantiles of their waits.
	Waits  uint64  `json:"recentWaits"`
	Median float64 `json:"waitMedianSeconds"`
	P90    float64 `json:"waitP90Seconds"`
	P99    float64 `json:"waitP99Seconds"`
	// Served is the cost of the requests dispatched, by second.
	Served float64 `json:"costPerSecond"`
}

// Engine is the state of one endpoint.
type Engine struct {
	Address  string `json:"endpoint"`
	Ready    bool   `json:"ready"`
	Role     string `json:"role"`
	InFlight int    `json:"inFlight"`
	// Foreign are requests of others that count as stock there.
	Foreign int `json:"foreign"`
	// Bound is its share of the upper bound, and Fill the part of it that is taken; both are absent if it has no bound.
	Bound *float64 `json:"bound,omitempty"`
	Fill  *float64 `json:"fill,omitempty"`
	// Answers are its answers by second, and Failures those of them with a status of 500 and more. They, its circuit, its mean
	// time of service and the age of its oldest request are known with requestQueueController.circuits.
	Answers  float64 `json:"answersPerSecond"`
	Failures float64 `json:"failuresPerSecond"`
	Circuit  string  `json:"circuit"`
	Service  float64 `json:"serviceSeconds"`
	Oldest   float64 `json:"oldestSeconds"`
	// Metrics are those of the engine itself; absent if they were never read.
	Metrics *EngineMetrics `json:"metrics,omitempty"`
	Models  int            `json:"models"` // 0: it lists none
}

// EngineMetrics are an engine's own metrics.
type EngineMetrics struct {
	Running int     `json:"running"`
	Waiting int     `json:"waiting"`
	Cache   float64 `json:"kvUsage"` // 0 to 1
	Age     float64 `json:"ageSeconds"`
}

// Flow is the state of one flow in one class of one tier.
type Flow struct {
	Flow  string `json:"flow"`
	Tier  string `json:"tier,omitempty"`
	Class string `json:"class,omitempty"`
	// Waiting requests have a cost of WaitingCost, and Since is for how long the oldest has waited, in seconds.
	Waiting     int     `json:"waiting"`
	WaitingCost int64   `json:"waitingCost"`
	Since       float64 `json:"sinceSeconds"`
	Why         string  `json:"why,omitempty"`
	InFlight    int     `json:"inFlight"`
	Weight      float64 `json:"weight,omitempty"`
	// Entitled is the share of its tier that it is entitled to while it waits, Attained its part of the cost that the tier has
	// served; absent if not known. A flow of several classes has one Attained for all of them.
	Entitled *float64 `json:"entitledShare,omitempty"`
	Attained *float64 `json:"attainedShare,omitempty"`
	// Requests and Rejected are those of the flow in all tiers that have ended, by second; absent for a flow without series.
	Requests *float64 `json:"requestsPerSecond,omitempty"`
	Rejected *float64 `json:"rejectionsPerSecond,omitempty"`
}

// Rejection is a request that was not served.
type Rejection struct {
	At      time.Time `json:"at"`
	ID      string    `json:"id,omitempty"`
	Flow    string    `json:"flow"`
	Tier    string    `json:"tier,omitempty"`
	Model   string    `json:"model,omitempty"`
	Outcome string    `json:"outcome"`
	Text    string    `json:"text,omitempty"`
	// Limit is the name of the limit that it met, and LimitValue the limit; "" and 0 if there is none.
	Limit      string `json:"limit,omitempty"`
	LimitValue int64  `json:"limitValue,omitempty"` // of queue-ttl, milliseconds
	// Holders are the flows that held most of the limit then, those first that held more.
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a flow with its part of a limit.
type Holder struct {
	Flow string `json:"flow"`
	Held int64  `json:"held"`
}
