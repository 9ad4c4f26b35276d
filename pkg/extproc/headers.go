package extproc

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// slot is the index of a header that Weir reads.
type slot uint8

// The slots of the headers that Weir always reads. Those of configured headers follow.
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
	slotSLO // not read yet, but removed like the others
	slotQueueState
	numFixedSlots
)

// maxSlots bounds the headers that Weir reads: each request has a place and a bit for each of them. Validate allows 16 in
// the flow's key, 16 deadlines, 4 objectives, 2 classes and 6 others beside the fixed ones; one more is noSlot.
const maxSlots = numFixedSlots + 16 + 16 + maxObjectiveHeaders + maxClassHeaders + 6 + 1

var _ [64 - maxSlots]struct{} // the bits of a uint64

const (
	destinationHeader = "x-gateway-destination-endpoint"
	// controlPrefix begins the names of Weir's own headers, in requests and in responses.
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

// headerNames knows the headers that Weir reads. Immutable after compile.
type headerNames struct {
	slots map[string]slot
	names []string
	// lengths has a bit for each length of a name, modulo 64. It rules out most other headers without a look-up.
	lengths uint64
	// control has a bit for each slot whose header is removed before the request goes on to the model server.
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

// add returns the slot of the header of that name, which gets one if it has none.
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

// headers are the headers of one request that Weir reads. Of several headers with one name it has the first value.
type headers struct {
	values [maxSlots]string
	// present has a bit for each slot whose header the request has.
	present uint64
	// twice has a bit for each slot whose header the request has more than once.
	twice uint64
	// bytes is the size of the names and values of all headers, total their number.
	bytes, total int64
	// end is set if the request ends with its headers.
	end bool
	// own has the names of the request's x-weir-* headers that have no slot. They are removed.
	own []string
}

// read reads the headers, in one pass.
func (h *headers) read(names *headerNames, list []*corev3.HeaderValue) {
	h.total += int64(len(list))
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

// first returns the value of the first of the slots that has one, or "".
func (h *headers) first(slots ...slot) string {
	for _, s := range slots {
		if v := h.values[s]; v != "" {
			return v
		}
	}
	return ""
}

// contentLength returns the announced length of the body, or -1.
func (h *headers) contentLength() int64 {
	n, err := strconv.ParseInt(h.values[slotContentLength], 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// headerValue returns the value of a header, in whichever field Envoy has put it.
func headerValue(hv *corev3.HeaderValue) string {
	if len(hv.GetRawValue()) > 0 {
		return string(hv.GetRawValue())
	}
	return hv.GetValue()
}
