package kube

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// The annotations of pods that Weir reads.
const (
	// AnnotationSlots is the number of requests that the model server at each port of the pod runs at once, like slots
	// in an endpoints file.
	AnnotationSlots = "weir.dev/slots"
	// AnnotationModels are the names of the models that the pod serves, separated by commas; without it, any.
	AnnotationModels = "weir.dev/models"
	// AnnotationMaxBatchedTokens is the number of tokens that the model server at each port of the pod processes in one
	// step, like maxBatchedTokens in an endpoints file.
	AnnotationMaxBatchedTokens = "weir.dev/max-batched-tokens"
	// AnnotationCapabilities names the abilities of the pod's engines besides text, separated by commas, like
	// capabilities in an endpoints file; without it all, and with "" none.
	AnnotationCapabilities = "weir.dev/capabilities"
	// AnnotationLabels are the labels of the pod's endpoints that requests may require, as NAME=VALUE separated by
	// commas, and AnnotationTaints their taints, separated by commas, like labels and taints in an endpoints file.
	AnnotationLabels = "weir.dev/labels"
	AnnotationTaints = "weir.dev/taints"
	// AnnotationPriority is the operator's priority of the pod's endpoints, like priority in an endpoints file.
	AnnotationPriority = "weir.dev/priority"
)

// LabelRole is llm-d's label of pods with the role of their engines: decode, prefill, both (or prefill-decode) or
// encode, or one of these combined with encode. Without it, both.
const LabelRole = "llm-d.ai/role"

// Limits of AnnotationModels, beyond which it is ignored. An annotation may have 256 KiB, and a pool 2,000 pods.
const (
	maxModels      = 256
	maxModelName   = 256     // bytes
	maxAnnotations = 8 << 10 // bytes of one value kept and read
)

// annotated is the content of a pod's annotations.
type annotated struct {
	slots            int      // 0: unknown
	models           []string // empty: any
	maxBatchedTokens int      // 0: unknown
	// lacks are the stated needs that its engines do not meet.
	lacks       scheduling.Needs
	lacksStated bool
	labels      map[string]string
	taints      []string
	priority    int
}

// readAnnotations reads the annotations. A bad one counts as absent, and problem has the reason.
func readAnnotations(annotations map[string]string) (a annotated, problem string) {
	var problems []string
	bad := func(name, value, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("metadata.annotations[%s]: %q: %s; it is ignored", name, short(value), fmt.Sprintf(format, args...)))
	}
	number := func(name string) int {
		value, given := annotations[name]
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
		if given && err != nil {
			bad(name, value, "must be a whole number from 0 to %d", math.MaxInt32)
		}
		if err != nil {
			return 0
		}
		return int(n)
	}
	a.slots, a.maxBatchedTokens = number(AnnotationSlots), number(AnnotationMaxBatchedTokens)
	if value, given := annotations[AnnotationPriority]; given {
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err == nil && n >= -scheduling.MaxPriority && n <= scheduling.MaxPriority {
			a.priority = n
		} else {
			bad(AnnotationPriority, value, "must be a whole number from %d to %d", -scheduling.MaxPriority, scheduling.MaxPriority)
		}
	}
	if value, given := annotations[AnnotationModels]; given {
		models, err := modelsOf(value)
		if err == nil {
			a.models = models
		} else {
			bad(AnnotationModels, value, "%v", err)
		}
	}
	if value, given := annotations[AnnotationCapabilities]; given {
		lacks, err := lacksOf(value)
		if err == nil {
			a.lacks, a.lacksStated = lacks, true
		} else {
			bad(AnnotationCapabilities, value, "%v", err)
		}
	}
	if value, given := annotations[AnnotationLabels]; given {
		labels, err := labelsOf(value)
		if err == nil {
			a.labels = labels
		} else {
			bad(AnnotationLabels, value, "%v", err)
		}
	}
	if value, given := annotations[AnnotationTaints]; given {
		taints, err := modelsOf(value)
		if err == nil {
			a.taints = taints
		} else {
			bad(AnnotationTaints, value, "%v", err)
		}
	}
	return a, strings.Join(problems, "; ")
}

// labelsOf reads a list of NAME=VALUE separated by commas.
func labelsOf(value string) (map[string]string, error) {
	pairs, err := modelsOf(value)
	if err != nil {
		return nil, err
	}
	labels := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, of, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("must be NAME=VALUE separated by commas")
		}
		labels[name] = strings.TrimSpace(of)
	}
	return labels, nil
}

// modelsOf reads a list of names separated by commas.
func modelsOf(value string) ([]string, error) {
	if len(value) > maxAnnotations {
		return nil, fmt.Errorf("must have at most %d bytes", maxAnnotations)
	}
	var models []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, fmt.Errorf("must be names separated by commas, and one is empty")
		case len(name) > maxModelName:
			return nil, fmt.Errorf("a name must have at most %d bytes", maxModelName)
		case !slices.Contains(models, name):
			models = append(models, name)
		}
		if len(models) > maxModels {
			return nil, fmt.Errorf("must be at most %d names", maxModels)
		}
	}
	return models, nil
}

// lacksOf reads a list of capabilities separated by commas, and returns the needs that are not among them.
func lacksOf(value string) (scheduling.Needs, error) {
	lacks := scheduling.AllNeeds
	if strings.TrimSpace(value) == "" {
		return lacks, nil
	}
	if len(value) > maxAnnotations {
		return 0, fmt.Errorf("must have at most %d bytes", maxAnnotations)
	}
	for name := range strings.SplitSeq(value, ",") {
		need, known := scheduling.NeedOf(strings.TrimSpace(name))
		if !known {
			return 0, fmt.Errorf("must be capabilities separated by commas (%s)", strings.Join(scheduling.NeedNames(), ", "))
		}
		lacks &^= need
	}
	return lacks, nil
}

// trimAnnotations keeps the annotations that are read, truncated to one byte more than permitted, so that too long ones
// are still detected.
func trimAnnotations(annotations map[string]string) map[string]string {
	var kept map[string]string
	for _, name := range []string{AnnotationSlots, AnnotationModels, AnnotationMaxBatchedTokens, AnnotationCapabilities, AnnotationLabels, AnnotationTaints, AnnotationPriority} {
		value, given := annotations[name]
		if !given {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		if len(value) > maxAnnotations {
			value = strings.Clone(value[:maxAnnotations+1])
		}
		kept[name] = value
	}
	return kept
}

// readRole reads the role of a pod. An engine with an unknown role gets no requests, as in llm-d.
func readRole(labels map[string]string) (work scheduling.Work, problem string) {
	role := labels[LabelRole]
	work, known := scheduling.WorkOf(role)
	if !known {
		problem = fmt.Sprintf("metadata.labels[%s]: %q: is no role (decode, prefill, both, encode); it gets no requests", LabelRole, short(role))
	}
	return work, problem
}

// trimLabels keeps only LabelRole.
func trimLabels(labels map[string]string) map[string]string {
	if role, given := labels[LabelRole]; given {
		return map[string]string{LabelRole: role}
	}
	return nil
}

// short returns the beginning of a text from outside.
func short(text string) string {
	const most = 64
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
