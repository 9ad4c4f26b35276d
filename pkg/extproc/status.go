package extproc

import "github.com/weir-epp/weir/pkg/flowcontrol"

// statusTable is the HTTP status of each rejection.
type statusTable [flowcontrol.NumOutcomes]int

// seedStatus is the table of the seed, and the base of the others. client-cancelled is recorded, never sent.
var seedStatus = statusTable{
	flowcontrol.OutcomeDispatched:       200,
	flowcontrol.OutcomeFlowFull:         503,
	flowcontrol.OutcomeQueueFull:        503,
	flowcontrol.OutcomeShed:             503,
	flowcontrol.OutcomeDisplaced:        503,
	flowcontrol.OutcomeTTLExpired:       503,
	flowcontrol.OutcomePreempted:        503,
	flowcontrol.OutcomeClientCancelled:  499,
	flowcontrol.OutcomeDeadlineExceeded: 504,
	flowcontrol.OutcomeNoEndpoint:       503,
	flowcontrol.OutcomeDraining:         503,
	flowcontrol.OutcomeBadRequest:       400,
	flowcontrol.OutcomeTooLarge:         413,
	flowcontrol.OutcomeBodyTimeout:      408,
	flowcontrol.OutcomeNoMemory:         503,
	flowcontrol.OutcomeInternal:         500,
}

// preset is a table with what else its profile's answers have.
type preset struct {
	status statusTable
	// codes are the error codes in the JSON body where they are not the reasons.
	codes map[flowcontrol.Outcome]string
	// preemptedHeader is sent as "true" with a preempted request's answer; "" is none.
	preemptedHeader string
}

// presets: the full queue is 503 in the seed, 429 in the Gateway's endpoint-picker protocol and in SMG, and 529 in
// Dynamo. Everything else is alike.
var presets = map[string]preset{
	"seed":    {status: seedStatus},
	"gateway": {status: seedStatus.withOverload(429)},
	"smg": {
		status: seedStatus.withOverload(429),
		codes: map[flowcontrol.Outcome]string{
			flowcontrol.OutcomeFlowFull:        "scheduler_queue_full",
			flowcontrol.OutcomeQueueFull:       "scheduler_queue_full",
			flowcontrol.OutcomeShed:            "scheduler_queue_full", // SMG has no word for these three
			flowcontrol.OutcomeDisplaced:       "scheduler_queue_full",
			flowcontrol.OutcomeNoMemory:        "scheduler_queue_full",
			flowcontrol.OutcomeTTLExpired:      "scheduler_queue_timeout",
			flowcontrol.OutcomePreempted:       "scheduler_preempted",
			flowcontrol.OutcomeClientCancelled: "scheduler_client_cancelled",
		},
		preemptedHeader: "x-smg-preempted",
	},
	"dynamo": {status: seedStatus.withOverload(529)},
}

// withOverload is t with one status for what is turned away because there is too much.
func (t statusTable) withOverload(status int) statusTable {
	for _, o := range []flowcontrol.Outcome{
		flowcontrol.OutcomeFlowFull, flowcontrol.OutcomeQueueFull, flowcontrol.OutcomeShed, flowcontrol.OutcomeDisplaced,
		flowcontrol.OutcomeNoMemory,
	} {
		t[o] = status
	}
	return t
}

// presetNames are the names of the presets, the default first.
var presetNames = []string{"seed", "gateway", "smg", "dynamo"}

// outcomeByReason finds the outcome whose string is reason.
func outcomeByReason(reason string) (flowcontrol.Outcome, bool) {
	for o := range flowcontrol.Outcome(flowcontrol.NumOutcomes) {
		if o.String() == reason {
			return o, true
		}
	}
	return 0, false
}
