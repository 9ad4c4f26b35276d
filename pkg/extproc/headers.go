package extproc

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// slot numbers a header whose value matters.
type slot uint8

// The headers that always matter; configured ones follow. The ecosystem's names have older synonyms.
const (
	slotMethod slot = iota
	slotPath
	slotContentType
	slotContentLength
	slotTransferEncoding
	slotUpgrade
	slotConnection
	slotProtocol
	slotDestination
	slotServed
	slotSubset
	slotObjective
	slotOldObjective
	slotFairness
	slotOldFairness
	slotSLO // read by nobody yet, and kept from the upstream
	slotQueueState
	numFixedSlots
)

// maxSlots bounds the headers that matter: a request has a place for each, and a bit. It is what Validate lets be
// configured (16 in the flow's key, 16 deadlines, 4 objectives, 3 others) beside the fixed ones, and noSlot.
const maxSlots = numFixedSlots + 16 + 16 + maxObjectiveHeaders + 3 + 1

var _ [64 - maxSlots]struct{} // the bits of a uint64

const (
	destinationHeader = "x-gateway-destination-endpoint"
	// controlPrefix marks headers that are Weir's own, in requests as in answers.
	controlPrefix = "x-weir-"
)

var fixedNames = [numFixedSlots]string{
	slotMethod:           ":method",
	slotPath:             ":path",
	slotContentType:      "content-type",
	slotContentLength:    "content-length",
	slotTransferEncoding: "transfer-encoding",
	slotUpgrade:          "upgrade",
	slotConnection:       "connection",
	slotProtocol:         ":protocol",
	slotDestination:      destinationHeader,
	slotServed:           "x-gateway-destination-endpoint-served",
	slotSubset:           subsetKey,
	slotObjective:        "x-llm-d-inference-objective",
	slotOldObjective:     "x-gateway-inference-objective",
	slotFairness:         "x-llm-d-inference-fairness-id",
	slotOldFairness:      "x-gateway-inference-fairness-id",
	slotSLO:              "x-llm-d-slo-ttft-ms",
	slotQueueState:       queueStateHeader,
}

// headerNames knows which headers matter. Immutable after compile.
type headerNames struct {
	slots map[string]slot
	names []string
	// lengths has a bit for each length of a name: most headers are passed over by it.
	lengths uint64
	// control has a bit for each slot that is removed before the upstream.
	control uint64
}

func newHeaderNames() headerNames {
	n := headerNames{slots: make(map[string]slot, maxSlots)}
	for i, name := range fixedNames {
		s := n.add(name)
		if slot(i) >= slotDestination {
			n.control |= 1 << s
		}
	}
	return n
}

// add gives name a slot, or finds the one that it has.
func (n *headerNames) add(name string) slot {
	name = strings.ToLower(name)
	if s, ok := n.slots[name]; ok {
		return s
	}
	s := slot(len(n.names))
	n.slots[name] = s
	n.names = append(n.names, name)
	n.lengths |= 1 << (len(name) & 63)
	return s
}

// headers are the values of one request's headers that matter: the first one's of several equal names.
type headers struct {
	values [maxSlots]string
	// present has a bit for each slot that the request has.
	present uint64
	// twice has a bit for each slot that the request has more than once.
	twice uint64
	// bytes is the size of all names and values.
	bytes int64
	// end says that the request has no body.
	end bool
	// own are the request's own x-weir-* headers, which are removed.
	own []string
}

// read goes over the headers once.
func (h *headers) read(names *headerNames, list []*corev3.HeaderValue) {
	for _, hv := range list {
		key := hv.Key
		raw := hv.RawValue
		h.bytes += int64(len(key) + len(raw) + len(hv.Value))
		if names.lengths>>(len(key)&63)&1 != 0 {
			if s, ok := names.slots[key]; ok {
				if h.present>>s&1 == 0 {
					h.present |= 1 << s
					if len(raw) > 0 {
						h.values[s] = string(raw)
					} else {
						h.values[s] = hv.Value
					}
				} else {
					h.twice |= 1 << s
				}
				continue
			}
		}
		if len(key) > len(controlPrefix) && key[2] == 'w' && strings.HasPrefix(key, controlPrefix) {
			h.own = append(h.own, key)
		}
	}
}

// first is the value of the first slot that has one.
func (h *headers) first(slots ...slot) string {
	for _, s := range slots {
		if v := h.values[s]; v != "" {
			return v
		}
	}
	return ""
}

// contentLength is the announced length of the body, or -1.
func (h *headers) contentLength() int64 {
	n, err := strconv.ParseInt(h.values[slotContentLength], 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// headerValue is the value of one header wherever Envoy put it.
func headerValue(hv *corev3.HeaderValue) string {
	if len(hv.GetRawValue()) > 0 {
		return string(hv.GetRawValue())
	}
	return hv.GetValue()
}
