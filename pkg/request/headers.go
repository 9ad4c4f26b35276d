package request

import (
	"math/bits"
	"strconv"
	"strings"
)

// slot is the index of a header that Weir reads.
type slot uint8

// The slots of the headers that Weir always reads. Slots of configured headers follow.
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
	slotSLO // not used yet, but removed like the others
	slotQueueState
	numFixedSlots
)

// maxSlots bounds the headers that Weir reads: each request has a field and a bit for each of them. Besides the fixed
// ones, Validate allows 16 in the flow's key and the sources of roles together, 16 deadlines, 4 objectives, 2 classes
// and 8 others; one more is noSlot.
const maxSlots = numFixedSlots + 16 + 16 + maxObjectiveHeaders + maxClassHeaders + 8 + 1

const _ = uint(64 - maxSlots) // the bits of Slots

// noSlot is the slot of headers that are not configured. No request has a value there.
const noSlot slot = maxSlots - 1

// explainSlot stands for ExplainHeader, which is not among the slots: they have no room for it.
const explainSlot slot = noSlot + 1

// Slots are a set of headers that Weir reads.
type Slots uint64

// The headers with special treatment in a reply.
const (
	DestinationSlot   Slots = 1 << slotDestination
	ContentLengthSlot Slots = 1 << slotContentLength
)

// ControlPrefix begins the names of Weir's own headers, in requests and in responses.
const ControlPrefix = "x-weir-"

// The names of headers also used by the data plane and in responses.
const (
	DestinationHeader = "x-gateway-destination-endpoint"
	// PrefillHeader tells a decode engine's sidecar the prefill engine that reads the prompt (llm-d).
	PrefillHeader    = "x-prefiller-host-port"
	QueueStateHeader = ControlPrefix + "queue-state"
	// ExplainHeader requests the record of the decision.
	ExplainHeader = ControlPrefix + "explain"
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
	slotDestination:      DestinationHeader,
	slotServed:           "x-gateway-destination-endpoint-served",
	slotSubset:           SubsetKey,
	slotObjective:        "x-llm-d-inference-objective",
	slotOldObjective:     "x-gateway-inference-objective",
	slotFairness:         "x-llm-d-inference-fairness-id",
	slotOldFairness:      "x-gateway-inference-fairness-id",
	slotSLO:              "x-llm-d-slo-ttft-ms",
	slotQueueState:       QueueStateHeader,
}

// headerNames has the headers that Weir reads. Immutable after compile.
type headerNames struct {
	slots map[string]slot
	names []string
	// lengths has a bit for each length of a name, modulo 64. It excludes most other headers without a look-up.
	lengths uint64
	// control has a bit for each slot whose header is removed before the request goes on to the model server.
	control Slots
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

// add returns the slot of the header, and assigns a missing one.
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

// Headers are the headers of one request that Weir reads. Of several headers with one name the first value counts.
type Headers struct {
	values  [maxSlots]string
	present Slots
	twice   Slots // the headers that the request has more than once
	// bytes is the size of the names and values of all headers, total their number.
	bytes, total int64
	// own has the names of the request's headers without a slot that must not reach the model server: x-weir-*, and
	// headers that redirect a sidecar.
	own []string
	// explain is set if the request has ExplainHeader.
	explain bool
}

// Add takes the next header. It copies the value of a header that Weir reads, and keeps the name of an x-weir-* header.
func (h *Headers) Add(r *Rules, name string, value []byte) {
	switch s := h.next(r, name, len(value)); s {
	case noSlot:
	case explainSlot:
		h.explain = isSet(string(value))
	default:
		h.values[s] = string(value)
	}
}

// AddString is Add for a value that is a string.
func (h *Headers) AddString(r *Rules, name, value string) {
	switch s := h.next(r, name, len(value)); s {
	case noSlot:
	case explainSlot:
		h.explain = isSet(value)
	default:
		h.values[s] = value
	}
}

// isSet reports whether a header's value means yes.
func isSet(value string) bool { return value == "1" || value == "true" }

// next counts a header, and returns the slot that lacks its value, explainSlot or noSlot.
func (h *Headers) next(r *Rules, name string, length int) slot {
	h.total++
	h.bytes += int64(len(name) + length)
	if r.names.lengths>>(len(name)&63)&1 != 0 {
		if s, ok := r.names.slots[name]; ok {
			if h.present.has(s) {
				h.twice |= 1 << s
				return noSlot
			}
			h.present |= 1 << s
			return s
		}
	}
	if len(name) > len(ControlPrefix) && (name[2] == 'w' && strings.HasPrefix(name, ControlPrefix) || steersSidecar(name)) {
		h.own = append(h.own, strings.Clone(name)) // it outlives the message, and name may be a part of that
		if name == ExplainHeader {
			return explainSlot
		}
	}
	return noSlot
}

// steersSidecar reports whether a header redirects a sidecar of llm-d: to a prefill engine, to engines that encode
// media, or to a rank of a data-parallel engine. A client could name any address in it.
func steersSidecar(name string) bool {
	return name == PrefillHeader || name == "x-encoder-hosts-ports" || name == "x-data-parallel-host-port"
}

func (s Slots) has(one slot) bool { return s>>one&1 != 0 }

// AppendNames appends the names of the headers to list, and returns it.
func (r *Rules) AppendNames(list []string, of Slots) []string {
	for ; of != 0; of &= of - 1 {
		list = append(list, r.names.names[bits.TrailingZeros64(uint64(of))])
	}
	return list
}

// first returns the value of the first slot with one, or "".
func (h *Headers) first(slots ...slot) string {
	for _, s := range slots {
		if v := h.values[s]; v != "" {
			return v
		}
	}
	return ""
}

// number returns the number in a header, and reports whether there is one.
func (h *Headers) number(s slot) (n int64, ok bool) {
	v := h.values[s]
	if v == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil && n >= 0
}

// contentLength returns the announced length of the body, or -1.
func (h *Headers) contentLength() int64 {
	if n, ok := h.number(slotContentLength); ok {
		return n
	}
	return -1
}
