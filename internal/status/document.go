package status

import "time"

// Schema is the version of the document.
const Schema = 1

// Document is the state of one epp.
type Document struct {
	Schema  int       `json:"schema"`
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	// Healthy is true if there are no Reasons.
	Healthy bool     `json:"healthy"`
	Reasons []Reason `json:"reasons"`
	// Notes are facts that say nothing against the health.
	Notes []Note `json:"notes,omitempty"`
	Pool  Pool   `json:"pool"`
	// WindowSeconds is the length of the window for all rates and attained shares; 0: they are not known yet.
	WindowSeconds float64  `json:"windowSeconds"`
	Tiers         []Tier   `json:"tiers"`
	Engines       []Engine `json:"engines"`
	Flows         []Flow   `json:"flows"`
	// Rejections are the last ones, the newest first.
	Rejections []Rejection `json:"rejections"`
	// LeftOut are the numbers of omitted rows that match the query.
	LeftOut LeftOut `json:"leftOut"`
}

// LeftOut are numbers of omitted rows.
type LeftOut struct {
	Engines    int `json:"engines"`
	Flows      int `json:"flows"` // among flows known without a look at every waiting request
	Rejections int `json:"rejections"`
}

// Reason is a reason why an epp is not healthy. ID is one word that never changes; Text is for people.
type Reason struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Note is a fact about some flows, with their numbers of requests. ID is one word that never changes; Text is for people.
type Note struct {
	ID    string   `json:"id"`
	Text  string   `json:"text"`
	Flows []Holder `json:"flows,omitempty"`
}

// Line returns the note as one line for people.
func (n *Note) Line() string {
	text := n.ID + ": " + Plain(n.Text)
	if n.Flows != nil {
		text += ": " + holders(n.Flows)
	}
	return text
}

// Pool is the state of the whole pool.
type Pool struct {
	Name     string `json:"name,omitempty"` // in Kubernetes
	Profile  string `json:"profile"`
	Ready    bool   `json:"ready"`
	Lacks    string `json:"lacks,omitempty"` // missing for readiness
	Draining bool   `json:"draining"`
	// Hashed is true if flows' names are shown as hashes (--hash-flow-keys).
	Hashed bool `json:"flowKeysHashed"`
	// Leads is also true without an election. Leader is the leading pod, if there is an election and the leader is
	// known.
	Leads  bool   `json:"leads"`
	Leader string `json:"leader,omitempty"`

	Engines      int `json:"engines"`
	ReadyEngines int `json:"readyEngines"`
	// Waiting is the number of waiting requests, of WaitingFlows flows; QueueCapacity is its limit.
	Waiting       int `json:"waiting"`
	WaitingFlows  int `json:"waitingFlows"`
	QueueCapacity int `json:"queueCapacity"`
	// Stock is the number of leases held; its bounds are absent if it is unbounded.
	Stock      int      `json:"stock"`
	LowerBound *float64 `json:"lowerBound,omitempty"`
	UpperBound *float64 `json:"upperBound,omitempty"`
	// Elsewhere is the number of other replicas' requests in flight.
	Elsewhere int64 `json:"elsewhere"`
	Streams   int   `json:"streams"`
	// Requests and Rejected are the rates of ended requests, and of those not served, per second.
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
	// Waits is the number of requests that waited and ended in the last five minutes; below are quantiles of their
	// waits.
	Waits  uint64  `json:"recentWaits"`
	Median float64 `json:"waitMedianSeconds"`
	P90    float64 `json:"waitP90Seconds"`
	P99    float64 `json:"waitP99Seconds"`
	// Served is the cost of dispatched requests per second.
	Served float64 `json:"costPerSecond"`
}

// Engine is the state of one endpoint.
type Engine struct {
	Address  string `json:"endpoint"`
	Ready    bool   `json:"ready"`
	Role     string `json:"role"`
	InFlight int    `json:"inFlight"`
	// Foreign is the foreign stock there.
	Foreign int `json:"foreign"`
	// Bound is its share of the upper bound, and Fill the taken part of Bound; both are absent without a bound.
	Bound *float64 `json:"bound,omitempty"`
	Fill  *float64 `json:"fill,omitempty"`
	// Answers are its answers per second, Failures those with a status of 500 or more, and Refused those with a 4xx. These,
	// its circuit, its mean service time and the age of its oldest request are known with requestQueueController.circuits.
	Answers  float64 `json:"answersPerSecond"`
	Failures float64 `json:"failuresPerSecond"`
	Refused  float64 `json:"refusedPerSecond,omitempty"`
	Circuit  string  `json:"circuit"`
	Service  float64 `json:"serviceSeconds"`
	Oldest   float64 `json:"oldestSeconds"`
	// Metrics are the engine's own metrics; absent if they were never read.
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
	// WaitingCost is the cost of the Waiting requests, and Since the longest wait so far, in seconds.
	Waiting     int     `json:"waiting"`
	WaitingCost int64   `json:"waitingCost"`
	Since       float64 `json:"sinceSeconds"`
	Why         string  `json:"why,omitempty"`
	InFlight    int     `json:"inFlight"`
	Weight      float64 `json:"weight,omitempty"`
	// Entitled is its entitled share of its tier while it waits, Attained its part of the cost served by the tier;
	// absent if unknown. A flow in several classes has one Attained for all of them.
	Entitled *float64 `json:"entitledShare,omitempty"`
	Attained *float64 `json:"attainedShare,omitempty"`
	// Requests and Rejected are the rates of the flow's ended requests in all tiers, and of those not served, per
	// second; absent for a flow without series.
	Requests *float64 `json:"requestsPerSecond,omitempty"`
	Rejected *float64 `json:"rejectionsPerSecond,omitempty"`
}

// Rejection is a rejected request.
type Rejection struct {
	At      time.Time `json:"at"`
	ID      string    `json:"id,omitempty"`
	Flow    string    `json:"flow"`
	Tier    string    `json:"tier,omitempty"`
	Model   string    `json:"model,omitempty"`
	Outcome string    `json:"outcome"`
	Text    string    `json:"text,omitempty"`
	// Limit is the name of the limit that rejected it, LimitValue that limit, and LimitText the same with its unit; "" and
	// 0: none.
	Limit      string `json:"limit,omitempty"`
	LimitValue int64  `json:"limitValue,omitempty"` // of queue-ttl, milliseconds
	LimitText  string `json:"limitText,omitempty"`
	// Holders are the flows that held most of the limit then, the largest first.
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a flow with its part of a limit.
type Holder struct {
	Flow string `json:"flow"`
	Held int64  `json:"held"`
	User string `json:"user,omitempty"` // of the flow; empty: all of them
}
