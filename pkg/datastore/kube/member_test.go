package kube

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// running is a pod that serves, changed by changes.
func running(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "chat-0", Namespace: "serving", UID: "u"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "2001:db8::1"}},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// annotate sets an annotation.
func annotate(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{name: value} }
}

// shown lists endpoints as people would write them down.
func shown(endpoints []scheduling.Endpoint) string {
	var out []string
	for _, e := range endpoints {
		text := e.Key + " at " + e.Address
		if !e.Ready {
			text = "-" + text
		}
		if e.Slots > 0 || len(e.Models) > 0 {
			text += fmt.Sprint(" ", e.Slots, e.Models)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestEndpointsOfAPod(t *testing.T) {
	for _, c := range []struct {
		why     string
		pod     *corev1.Pod
		want    string
		problem string
	}{
		{"each port is an endpoint", running(), "u:8000 at 10.0.0.1:8000, u:8001 at 10.0.0.1:8001", ""},
		{
			"IPv6", running(func(p *corev1.Pod) { p.Status.PodIP = "2001:DB8:0::1" }),
			"u:8000 at [2001:db8::1]:8000, u:8001 at [2001:db8::1]:8001", "",
		},
		{
			"not ready", running(func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }),
			"-u:8000 at 10.0.0.1:8000, -u:8001 at 10.0.0.1:8001", "",
		},
		{
			"ready, but it ends", running(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)} }),
			"-u:8000 at 10.0.0.1:8000, -u:8001 at 10.0.0.1:8001", "",
		},
		{
			"ready, but it has failed", running(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			"-u:8000 at 10.0.0.1:8000, -u:8001 at 10.0.0.1:8001", "",
		},
		{"no address yet", running(func(p *corev1.Pod) { p.Status.PodIP = "" }), "", ""},
		{"no address of a pod", running(func(p *corev1.Pod) { p.Status.PodIP = "0.0.0.0" }), "", `status.podIP: "0.0.0.0": is no address of a pod`},
		{"the same in IPv6", running(func(p *corev1.Pod) { p.Status.PodIP = "::ffff:0.0.0.0" }), "", `status.podIP: "::ffff:0.0.0.0": is no`},
		{"a cloud's metadata", running(func(p *corev1.Pod) { p.Status.PodIP = "169.254.169.254" }), "", `status.podIP: "169.254.169.254": is no`},
		{
			"two problems", running(func(p *corev1.Pod) {
				p.Status.PodIP = "fe80::1"
				p.Annotations = map[string]string{AnnotationSlots: "x"}
			}), "",
			`metadata.annotations[weir.dev/slots]: "x": must be a whole number from 0 to 2147483647; it is ignored; status.podIP: "fe80::1": is no`,
		},
		{"nonsense", running(func(p *corev1.Pod) { p.Status.PodIP = "fe80::1%eth0" }), "", `status.podIP: "fe80::1%eth0": is no`},
		{
			"slots of each port", running(annotate(AnnotationSlots, " 64")),
			"u:8000 at 10.0.0.1:8000 64 [], u:8001 at 10.0.0.1:8001 64 []", "",
		},
		{
			"models", running(annotate(AnnotationModels, "llama, chat,llama")),
			"u:8000 at 10.0.0.1:8000 0 [llama chat], u:8001 at 10.0.0.1:8001 0 [llama chat]", "",
		},
		{
			"a bad annotation is ignored", running(annotate(AnnotationSlots, "-1")),
			"u:8000 at 10.0.0.1:8000, u:8001 at 10.0.0.1:8001",
			`metadata.annotations[weir.dev/slots]: "-1": must be a whole number from 0 to 2147483647; it is ignored`,
		},
	} {
		m := memberOf(c.pod)
		if got := shown(m.endpoints(nil, []int{8000, 8001})); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
		if !strings.HasPrefix(m.problem, c.problem) || c.problem == "" && m.problem != "" {
			t.Errorf("%s: problem %q, want %q", c.why, m.problem, c.problem)
		}
	}
}

// The engines of a pod process as many tokens in a step as its annotation says; a change of it is a change of the pod.
func TestMaxBatchedTokens(t *testing.T) {
	pod := func(tokens string) member {
		p := running(annotate(AnnotationMaxBatchedTokens, tokens))
		p.Annotations = trimAnnotations(p.Annotations)
		return memberOf(p)
	}
	one, same, other := pod("8192"), pod(" 8192 "), pod("4096")
	for _, e := range one.endpoints(nil, []int{8000, 8001}) {
		if e.MaxBatchedTokens != 8192 || e.Slots != 0 {
			t.Errorf("%+v", e)
		}
	}
	if one.equal(&other) || !one.equal(&same) {
		t.Error("a change is none")
	}
}

// The endpoints of a pod are preferred by its annotation; a change of it is a change of the pod.
func TestPriorityOfPods(t *testing.T) {
	pod := func(priority string) member {
		p := running(annotate(AnnotationPriority, priority))
		p.Annotations = trimAnnotations(p.Annotations)
		return memberOf(p)
	}
	one, same, other := pod("-100"), pod(" -100 "), pod("100")
	for _, e := range one.endpoints(nil, []int{8000, 8001}) {
		if e.Priority != -100 || one.problem != "" {
			t.Errorf("%+v, %q", e, one.problem)
		}
	}
	if one.equal(&other) || !one.equal(&same) || other.endpoints(nil, []int{8000})[0].Priority != 100 {
		t.Error("a change is none")
	}
	for _, value := range []string{"", "101", "-101", "1.5", "high", strings.Repeat("9", 10000)} {
		if bad := pod(value); bad.priority != 0 || !strings.Contains(bad.problem, "must be a whole number from -100 to 100; it is ignored") {
			t.Errorf("%.20q: %d, %q", value, bad.priority, bad.problem)
		}
	}
}

// Labels and taints of a pod are those of its endpoints; bad ones are ignored, and a change of them is a change of the pod.
func TestLabelsAndTaints(t *testing.T) {
	pod := func(labels, taints string) member {
		p := running(annotate(AnnotationLabels, labels), func(p *corev1.Pod) { p.Annotations[AnnotationTaints] = taints })
		p.Annotations = trimAnnotations(p.Annotations)
		return memberOf(p)
	}
	one := pod("zone = a,rack=", "old, spot")
	for _, e := range one.endpoints(nil, []int{8000}) {
		if got := fmt.Sprint(e.Labels, e.Taints); got != "map[rack: zone:a] [old spot]" || one.problem != "" {
			t.Errorf("%s, %q", got, one.problem)
		}
	}
	other, third := pod("zone=b,rack=", "old,spot"), pod("zone=a,rack=", "old")
	if one.equal(&other) || one.equal(&third) {
		t.Error("a change is none")
	}
	if bad := pod("zone", "a,,b"); bad.labels != nil || bad.taints != nil || !strings.Contains(bad.problem, AnnotationLabels) || !strings.Contains(bad.problem, AnnotationTaints) {
		t.Errorf("%+v", bad)
	}
}

// Annotations are bounded, in what is read and in what is kept.
func TestHostileAnnotations(t *testing.T) {
	names := func(n int) string { return strings.Repeat("m,", n-1) + "m" }
	distinct := make([]string, maxModels+1)
	for i := range distinct {
		distinct[i] = fmt.Sprint("m", i)
	}
	for value, want := range map[string]string{
		"":                                "one is empty",
		"a,,b":                            "one is empty",
		strings.Repeat("x", 257):          "a name must have at most 256 bytes",
		names(5000):                       "must have at most 8192 bytes",
		strings.Join(distinct, ","):       "must be at most 256 names",
		strings.Repeat("\xff,", 100000):   "must have at most 8192 bytes",
		"99999999999999999999, \x00\x1b[": "",
	} {
		a, problem := readAnnotations(map[string]string{AnnotationModels: value})
		if (want == "") != (problem == "") || !strings.Contains(problem, want) || len(problem) > 400 {
			t.Errorf("%.40q: %q, want %q", value, problem, want)
		}
		if want != "" && a.models != nil {
			t.Errorf("%.40q: is used: %d models", value, len(a.models))
		}
	}
	for _, value := range []string{"", "1.5", "0x10", "2147483648", "1e3", "many", strings.Repeat("9", 10000)} {
		if a, problem := readAnnotations(map[string]string{AnnotationMaxBatchedTokens: value}); a.maxBatchedTokens != 0 || problem == "" {
			t.Errorf("max batched tokens %.40q: %d, %q", value, a.maxBatchedTokens, problem)
		}
		if a, problem := readAnnotations(map[string]string{AnnotationSlots: value}); a.slots != 0 || problem == "" {
			t.Errorf("slots %.40q: %d, %q", value, a.slots, problem)
		}
	}
}

func TestCapabilitiesOfPods(t *testing.T) {
	for value, want := range map[string]string{
		"image, structured_output": "audio,video,embeddings true", "": "image,audio,video,embeddings,structured_output true",
		" ": "image,audio,video,embeddings,structured_output true", "vision": " false", "image,,": " false", strings.Repeat("image,", 4000): " false",
	} {
		m := memberOf(running(annotate(AnnotationCapabilities, value)))
		e := m.endpoints(nil, []int{8000})[0]
		if got := fmt.Sprint(e.Lacks, " ", e.LacksStated); got != want || (m.problem == "") != e.LacksStated {
			t.Errorf("%.30q: lacks %s, problem %q, want %s", value, got, m.problem, want)
		}
	}
}

// Trimming a pod changes nothing of what is read of it, and leaves nothing else.
func TestTrimPod(t *testing.T) {
	for _, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
		func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:1] },
		annotate(AnnotationModels, strings.Repeat("model,", 40000)),
		annotate(AnnotationSlots, "7"),
		annotate(AnnotationCapabilities, "image"),
	} {
		pod := running(change, func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "vllm", Image: "vllm"}}
			p.Labels = map[string]string{"app": "chat"}
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations["other"] = "x"
			p.Status.Conditions[0].Message = "a text"
		})
		before := memberOf(pod)
		trimPod(pod)
		if after := memberOf(pod); !before.equal(&after) {
			t.Errorf("%+v, trimmed %+v", before, after)
		}
		if !reflect.DeepEqual(pod.Spec, corev1.PodSpec{}) || pod.Labels != nil || pod.Annotations["other"] != "" ||
			len(pod.Status.Conditions) > 1 || pod.Status.PodIPs != nil || len(pod.Annotations[AnnotationModels]) > maxAnnotations+1 {
			t.Errorf("kept: %+v", pod)
		}
		if pod.Name != "chat-0" || pod.Namespace != "serving" || pod.UID != "u" {
			t.Errorf("lost: %+v", pod)
		}
	}
}

// The store uses the newest of several endpoints with one address, so the oldest come first; and always in one order.
func TestOlderFirst(t *testing.T) {
	list := []*member{{uid: "b", created: time.Unix(3, 0)}, {uid: "c", created: time.Unix(1, 0)}, {uid: "a", created: time.Unix(3, 0)}}
	slices.SortFunc(list, olderFirst)
	if list[0].uid != "c" || list[1].uid != "a" || list[2].uid != "b" {
		t.Errorf("%s, %s, %s", list[0].uid, list[1].uid, list[2].uid)
	}
}
