package request

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/estimate"
)

// fuzzConfig names a header of each kind, so that a fuzzer has something to forge.
func fuzzConfig() Config {
	cfg := DefaultConfig()
	cfg.FlowKey = []string{"header:x-tenant", "metadata:auth/sub", "model"}
	cfg.UnknownModels = UnknownModelsShared
	cfg.Models = []Model{
		{Name: "m", Criticality: Sheddable, Targets: []Target{{Name: "m-v1", Weight: 1}, {Name: "m-v2", Weight: 3}}}, {Name: "plain"},
	}
	cfg.Objectives = []Objective{{Name: "batch", Priority: -1}}
	cfg.TenantPolicies = map[string]TenantPolicy{"*": {MaxClass: "default"}, "vip": {MaxClass: "critical"}}
	cfg.Criticality.Header = "x-class"
	cfg.TrustedHeaders = TrustedHeaders{Model: "x-model", Cost: "x-cost", InputTokens: "x-input", Requirements: "x-needs"}
	inFamilies(&cfg)
	cfg.PolicyClass = PolicyClass{
		Headers: []string{"x-policy"}, PriorityHeader: "x-priority", MaxPriority: 9, MaxStrictPriority: 3,
		Hints: []string{"priority", "strict_priority", "osl", "latency_sensitivity"},
	}
	cfg.DeadlineHeaders = []string{"x-deadline-ms", "grpc-timeout"}
	return cfg
}

// trusted are the headers of fuzzConfig that a request may have only once.
var trusted = []string{
	"x-tenant", "x-class", "x-llm-d-inference-objective", "x-model", "x-cost", "x-input", "x-deadline-ms", "grpc-timeout",
	"x-needs", "x-policy", "x-priority",
}

// FuzzRequest: for any input, reading does not panic, and gives the same result for the same request. A refusal names
// the part that its sender can correct. Any other request has a flow and a tier within its tenant's policy, and is
// within the limits.
func FuzzRequest(f *testing.F) {
	f.Add(":method POST :path /v1/chat/completions x-tenant vip x-class critical", `{"model":"m","messages":[{"content":"hi"}]}`, "", uint8(2), false, false)
	f.Add(":method POST :path /v1/completions x-model m x-cost 5 x-deadline-ms 100", `{"model":"m","prompt":"hi","max_tokens":9}`, "-", uint8(4), false, false)
	f.Add(":method GET :path /v1/models x-tenant a", "", "10.0.0.1", uint8(0), true, false)
	f.Add(":method POST :path /v1/messages x-tenant a x-tenant b", `{"model":7}`, "", uint8(2), false, false)
	f.Add(":method POST :path /generate content-length 99 grpc-timeout 5S", `{"model":"m","model":"plain"}`, "", uint8(3), false, true)
	f.Add(":method POST :path /v1/embeddings x-input 7 x-llm-d-inference-objective batch", `{"model":"m","input":["a","b"]}`, "", uint8(4), false, false)
	f.Add(":method POST :path /v1/completions x-needs zone=a,~old x-policy batch x-priority 5", `{"model":"m","nvext":{"agent_hints":{"priority":7,"strict_priority":9,"osl":3}}}`, "", uint8(2), false, false)
	f.Add(":method POST :path /v1/audio/transcriptions content-type multipart/form-data;boundary=b", "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n", "", uint8(2), false, false)
	f.Fuzz(func(t *testing.T, text, content, subset string, mode uint8, end, part bool) {
		pairs := strings.Split(text, " ")
		pairs = pairs[:len(pairs)/2*2]
		var hint Subset
		if hint.Set = subset != ""; hint.Set {
			hint.Add(subset)
		}
		now := time.Unix(1000, 0)
		read := func() (*Request, bool, error) {
			s := sent{
				cfg: fuzzConfig(), headers: pairs, end: end, mode: BodyMode(mode % NumModes), askUsage: true, subset: hint,
				body: content, part: part, now: now, lists: listed{"listed"}, context: told{"auth/sub": pairs0(pairs)},
			}
			q, err := s.read()
			return q, s.needed, err
		}
		q, needed, err := read()
		again, _, same := read()
		again.rules, again.draw = q.rules, q.draw
		if !reflect.DeepEqual(q, again) || (err == nil) != (same == nil) || err != nil && err.Error() != same.Error() {
			t.Fatalf("%+v, %v\nand then %+v, %v", q, err, again, same)
		}
		times := map[string]int{}
		for i := 0; i < len(pairs); i += 2 {
			times[pairs[i]]++
		}
		for _, name := range trusted {
			if times[name] > 1 && err == nil {
				t.Errorf("%s came %d times", name, times[name])
			}
		}
		if len(q.Model) > MaxModelBytes {
			t.Errorf("a model of %d bytes", len(q.Model))
		}
		if err != nil {
			checkRefusal(t, err, times)
			return
		}
		checkValue(t, q, now)
		if !needed {
			if len(q.Edits) > 0 {
				t.Error("edits of a body that was not read")
			}
			return
		}
		checkEdits(t, q, content)
		q.Classify(int64(len(content)))
		if c := q.Class; !slices.ContainsFunc(q.rules.cfg.Classes, func(known Class) bool { return known.Name == c.Class }) ||
			c.Ring != "" || c.Priority < 0 || c.Priority > 9 || c.Strict < 0 || c.Strict > 3 {
			t.Errorf("the class %+v", c)
		}
	})
}

// pairs0 is another identity chosen by the fuzzer.
func pairs0(pairs []string) string {
	if len(pairs) == 0 {
		return ""
	}
	return pairs[0]
}

func checkRefusal(t *testing.T, err error, sent map[string]int) {
	e := new(Error)
	switch {
	case errors.Is(err, ErrEmptySubset):
	case !errors.As(err, &e):
		t.Errorf("%v: %T", err, err)
	case !errors.Is(e, ErrMalformed) && !errors.Is(e, ErrTooLarge) || !strings.HasSuffix(e.Message, "."):
		t.Errorf("%#v", e)
	case e.Field != "" && e.Field != "model" && (sent[e.Field] == 0 || !strings.Contains(e.Message, e.Field)):
		t.Errorf("it names %s: %s", e.Field, e.Message)
	}
}

func checkValue(t *testing.T, q *Request, now time.Time) {
	switch {
	case q.Flow == "":
		t.Error("no flow")
	case q.Tenant == "" && q.Flow != Anonymous && q.Flow != UnknownModel && !strings.Contains(q.Flow, "/") && !strings.HasPrefix(q.Flow, hashPrefix):
		t.Errorf("without a tenant, the flow %q", q.Flow)
	case q.Tenant != "" && (q.Flow != q.Tenant || q.Flow == Anonymous || q.Flow == UnknownModel || q.Flow == "m/m-v1"):
		t.Errorf("the tenant %q has the flow %q", q.Tenant, q.Flow)
	case q.Tier < 0 || q.Tier > 2 || q.Tier < q.AskedTier || q.Tier == 0 && q.Tenant != "vip":
		t.Errorf("tier %d, asked for %d by %q", q.Tier, q.AskedTier, q.Tenant)
	case q.Model == "m" && q.Target != "m-v1" && q.Target != "m-v2":
		t.Errorf("the target %q", q.Target)
	case q.Subset.Set && (len(q.Subset.Members) == 0 || slices.Contains(q.Subset.Members, "")):
		t.Errorf("the subset %q", q.Subset.Members)
	case !q.Deadline.IsZero() && (!q.Deadline.After(now) || q.Deadline.After(now.Add(maxTimeout))):
		t.Errorf("the deadline %v", q.Deadline)
	case q.StatedCost < 0 || q.Size.Tokens < estimate.Unknown || q.Size.Text < estimate.Unknown || q.Size.Answers < 1:
		t.Errorf("the cost %d, of %+v", q.StatedCost, q.Size)
	}
}

// checkEdits checks that the edited body names the target, and is otherwise unchanged.
func checkEdits(t *testing.T, q *Request, content string) {
	if body.IsForm(q.contentType) {
		return
	}
	var before, after body.Fields
	if err := before.Scan([]byte(content)); err != nil || len(q.Edits) == 0 {
		return
	}
	if err := after.Scan(body.Apply([]byte(content), q.Edits...)); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	if before.ModelEnd > 0 && q.Target != "" && after.Model != q.Target {
		t.Errorf("the model %q instead of %q", after.Model, q.Target)
	}
	if q.AsksUsage != (after.IncludeUsage && !before.IncludeUsage) || after.Prompt != before.Prompt || after.Stream != before.Stream {
		t.Errorf("%s says %+v, and said %+v", body.Apply([]byte(content), q.Edits...), after, before)
	}
}
