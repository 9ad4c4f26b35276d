package invalid

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A path is Go's, whatever stands in a map's key, and its pattern is the same for all elements.
func TestPath(t *testing.T) {
	for _, test := range []struct {
		path          Path
		text, pattern string
		elements      string
	}{
		{At("TotalCapacity"), "TotalCapacity", "TotalCapacity", "[]"},
		{At("Tiers", 3).At("QueueSize"), "Tiers[3].QueueSize", "Tiers[].QueueSize", "[3]"},
		{At("Weights", Key(`a].b["`)), `Weights["a].b[\""]`, "Weights[]", `[a].b["]`},
		{At("Models", 1, "Targets", 0, "Name"), "Models[1].Targets[0].Name", "Models[].Targets[].Name", "[1 0]"},
	} {
		if test.path.String() != test.text || test.path.Pattern() != test.pattern || fmt.Sprint(test.path.Elements()) != test.elements {
			t.Errorf("%v: %s, %v", test.path, test.path.Pattern(), test.path.Elements())
		}
	}
	// Longer paths do not share memory with the shorter one that they were made from.
	tier := make(Path, 0, 8).At("Tiers", 1)
	name, weight := tier.At("Name"), tier.At("Weight")
	if name.String() != "Tiers[1].Name" || weight.String() != "Tiers[1].Weight" {
		t.Errorf("%v, %v", name, weight)
	}
}

// Every rule says what it wants, and says nothing of what is right.
func TestRules(t *testing.T) {
	var ps Problems
	var names Names
	at := At("Field")
	words := []string{"fcfs", "edf"}
	right := []bool{
		AtLeast(&ps, at, 1, 1), Above(&ps, at, 1, 0), Within(&ps, at, 1, 1, 2), Within(&ps, at, 2, 1, 2),
		OneOf(&ps, at, "edf", words), names.Check(&ps, at, "a"), names.Check(&ps, at, "b"),
	}
	if len(ps) > 0 || strings.Contains(fmt.Sprint(right), "false") {
		t.Fatalf("%v: %v", right, ps)
	}
	wrong := []bool{
		AtLeast(&ps, at, 0, 1), Above(&ps, at, 0*time.Second, 0), Within(&ps, at, 3, 1, 2), Within(&ps, at, 61*time.Minute, 0, time.Hour),
		OneOf(&ps, at, "lcfs", words), names.Check(&ps, at, "a"), names.Check(&ps, at, ""),
	}
	if strings.Contains(fmt.Sprint(wrong), "true") {
		t.Errorf("%v", wrong)
	}
	want := strings.Join([]string{
		"Field: 0: must be at least 1",
		"Field: 0s: must be above 0s",
		"Field: 3: must be from 1 to 2",
		"Field: 1h1m: must be from 0s to 1h",
		`Field: "lcfs": must be one of fcfs, edf`,
		`Field: "a": must be unique`,
		`Field: "": must be given`,
	}, "\n")
	if err := ps.Err(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if len(ps[4].Known) != 2 || ps[0].Known != nil {
		t.Errorf("known words: %v", ps)
	}
}

// The problems of a part come under its own path, and so do the fields that they mention; whoever has other names for
// fields can use them throughout.
func TestUnder(t *testing.T) {
	var part, whole Problems
	part.Add(At("Flow"), 11, "must be at most %s (%d)", At("Total"), 10)
	part.Add(At("Tiers"), Shown("33 tiers"), "must be at most %d", 32)
	part.Add(At("Flow"), nil, "there is a %s already", At("Total"))
	whole.Under(At("Queue"), part.Err())
	whole.Under(At("Stock"), Problems(nil).Err())
	want := "Queue.Flow: 11: must be at most Queue.Total (10)\nQueue.Tiers: 33 tiers: must be at most 32\n" +
		"Queue.Flow: there is a Queue.Total already"
	if whole.Error() != want {
		t.Errorf("got\n%v", whole)
	}
	if part[0].Error() != "Flow: 11: must be at most Total (10)" {
		t.Errorf("the part's own: %v", part[0])
	}
	if got := whole[0].Want(func(p Path) string { return "key " + p.Pattern() }); got != "must be at most key Queue.Total (10)" {
		t.Error(got)
	}
}

// Nothing is lost between an error and its problems: wrapped ones are found, others are not overlooked.
func TestOf(t *testing.T) {
	if Of(nil) != nil || Problems(nil).Err() != nil {
		t.Error("no problem is one")
	}
	var ps Problems
	AtLeast(&ps, At("A"), 0, 1)
	err := fmt.Errorf("flowcontrol: %w", ps.Err())
	if got := Of(err); len(got) != 1 {
		t.Errorf("%v", got)
	}
	var p Problem
	if !errors.As(err, &p) || p.Path.String() != "A" {
		t.Errorf("%v", p)
	}
	defer func() {
		if recover() == nil {
			t.Error("another error is taken for none")
		}
	}()
	Of(errors.Join(ps.Err(), errors.New("something else")))
}
