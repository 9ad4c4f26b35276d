package names

import (
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-epp/weir/pkg/invalid"
)

// The reasons of verdicts, for the condition Accepted of a resource.
const (
	// ReasonAccepted: the resource is in use. All other reasons mean that it is not.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the resource has a problem.
	ReasonInvalid = "Invalid"
	// ReasonNameInUse: the file has an objective of this name.
	ReasonNameInUse = "NameInUse"
	// ReasonModelNameInUse: the file or an older resource has its modelName.
	ReasonModelNameInUse = "ModelNameInUse"
	// ReasonTooManyNames: older resources have used up MaxNames.
	ReasonTooManyNames = "TooManyNames"
)

const (
	// MaxMessageBytes bounds Verdict.Message, as Events require.
	MaxMessageBytes = 1024
	// maxProblems is the number of problems after which a resource is read no further.
	maxProblems = 8
)

// Verdict is the result for one resource.
type Verdict struct {
	Kind, Name string
	UID        types.UID
	Generation int64 // of the resource as it was read
	Reason     string
	Message    string // for people
}

// Accepted reports whether the resource is in use.
func (v Verdict) Accepted() bool { return v.Reason == ReasonAccepted }

// judge adds a verdict.
func (n *Names) judge(kind string, o *metav1.ObjectMeta, reason, message string) {
	n.Verdicts = append(n.Verdicts, Verdict{
		Kind: kind, Name: o.Name, UID: o.UID, Generation: o.Generation, Reason: reason, Message: cut(message),
	})
}

// judgeInvalid adds a verdict that names the problems.
func (n *Names) judgeInvalid(kind string, o *metav1.ObjectMeta, ps invalid.Problems) {
	texts := make([]string, 0, maxProblems+1)
	for i, p := range ps {
		if i == maxProblems {
			texts = append(texts, "and more")
			break
		}
		texts = append(texts, p.Error())
	}
	n.judge(kind, o, ReasonInvalid, strings.Join(texts, "; "))
}

// cut shortens a text to MaxMessageBytes.
func cut(text string) string {
	const more = "…"
	if len(text) <= MaxMessageBytes {
		return text
	}
	end := MaxMessageBytes - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
