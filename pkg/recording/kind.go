package recording

// kind is the kind of a record.
type kind uint8

// The kinds. The numbers are part of the format.
const (
	arrive    kind = iota + 1 // a request has arrived; it has the next number
	passOn                    // the same, for one that does not queue
	told                      // a granted request knows its destination
	cancel                    // a client is gone, or its deadline has passed
	firstByte                 // an answer's headers go on to the client
	served                    // another endpoint serves the request
	complete                  // a lease is settled
	refuse                    // a request has ended before it arrived
	backends                  // the endpoints have changed
	configure                 // the configuration has changed
	drain                     // the program is shutting down
	advance                   // the timer has fired
	preempt                   // the preemptor's client is still there
	gone                      // it is not
	failed                    // the event has panicked
	noted                     // a panic outside the machine
	verdict                   // the result for a request
	foreign                   // the foreign stock at the backends has changed
	signals                   // an engine's signals have changed
	raised                    // a request costs more than estimated
	trueUp                    // the actual cost of a request is known
	answered                  // a lease is settled, and its engine has answered
	prefilled                 // a prefill engine has read a prompt
	rated                     // the ratings of the prefill engines for the next arrival's prompt
	prompted                  // the ring and prompt length of the next arrival
	metered                   // the next arrival's tokens in its tenant's quota
	titled                    // the role of the next arrival
	used                      // the tokens that a request has used of its tenant's quota
	numKinds
)

var kindNames = [numKinds]string{
	arrive: "arrival", passOn: "arrival that does not queue", told: "destination told", cancel: "cancellation",
	firstByte: "first byte", served: "served elsewhere", complete: "completion", refuse: "refusal",
	backends: "change of endpoints", configure: "change of configuration", drain: "drain", advance: "timer",
	preempt: "preemption", gone: "preemptor gone", failed: "panic", noted: "panic beside a decision", verdict: "verdict",
	foreign: "change of foreign stock", signals: "signals", raised: "higher cost", trueUp: "usage", answered: "answer",
	prefilled: "prompt read", rated: "prompt at prefill engines",
	prompted: "ring and prompt", metered: "use of a quota", titled: "role", used: "usage of a quota",
}

// String returns the kind in words.
func (k kind) String() string {
	if k < numKinds && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown record"
}

// follows reports whether a record belongs to the event of the record before it.
func (k kind) follows() bool { return k == preempt || k == gone || k == failed || k == verdict }

// precedes reports whether a record only adds to the next arrival.
func (k kind) precedes() bool { return k == rated || k == prompted || k == metered || k == titled }

// timed is set in a record's first byte, beside its kind, if a time follows.
const timed = 0x80

// Flags of an engine's signals.
const (
	isKnown = 1 << iota
	isUtilised
	isUnloaded // its statement of models that are not loaded has changed
)

// Flags of an arrival, in the byte after its time.
const (
	hasTierName = 1 << iota
	hasDeadline
	hasUUID // its ID, as 16 bytes
	hasText // its ID, as text
	isPlaced
	isRated // something was known of its prompt
	hasPath // its class and priorities
	hasTokens
)
