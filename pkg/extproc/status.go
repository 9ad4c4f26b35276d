package extproc

import "github.com/weir-epp/weir/pkg/flowcontrol"

// statusTable has the HTTP status of each outcome.
type statusTable [flowcontrol.NumOutcomes]int

// seedStatus is the table of the seed, and the base of the others. The status of client-cancelled is recorded, never
// sent.
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
	flowcontrol.OutcomeUnknownModel:     404,
	flowcontrol.OutcomeQuotaExceeded:    429,
	flowcontrol.OutcomeUnsupported:      400,
}

// preset is a status table with the other details of one system's rejections.
type preset struct {
	status statusTable
	// codes are the error codes in the JSON body that differ from the reasons.
	codes map[flowcontrol.Outcome]string
	// preemptedHeader is a header that is sent as "true" if the request was preempted, or "" for none.
	preemptedHeader string
	// tellsLimits is set if a rejection by a class limit has the body of Dynamo's selection service.
	tellsLimits bool
}

// presets has the values of responses.preset. A full queue is 503 in the seed, 429 in the Gateway's endpoint-picker
// protocol and in SMG, and 529 in Dynamo. All other statuses are the same.
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
	"dynamo": {status: seedStatus.withOverload(529), tellsLimits: true},
}

// withOverload returns t with the given status for all overload outcomes.
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

// outcomeByReason returns the outcome with the given reason.
func outcomeByReason(reason string) (flowcontrol.Outcome, bool) {
	for o := range flowcontrol.Outcome(flowcontrol.NumOutcomes) {
		if o.String() == reason {
			return o, true
		}
	}
	return 0, false
}
