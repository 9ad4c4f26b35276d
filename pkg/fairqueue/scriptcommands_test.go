package fairqueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func (s *script) run(command string, a arguments) {
	s.Helper()
	switch command {
	case "queue", "tier", "flow":
		s.configure(command, a)
	case "reload":
		if err := s.queue().Reconfigure(s.cfg); err != nil {
			s.say("refused: %v", err)
		}
		s.audit.excused = true
	case "push":
		for range s.number(a, "n", 1) {
			s.push(a)
		}
	case "pop":
		s.pop(a, s.number(a, "n", 1))
	case "slots":
		if _, err := fmt.Sscan(a.words[0], &s.slots); err != nil {
			s.Fatal(err)
		}
	case "grant":
		s.pop(a, s.slots-len(s.out))
	case "complete":
		for _, name := range a.words {
			delete(s.out, name)
			if cost := s.number(a, "cost", 0); cost > 0 {
				s.q.TrueUp(s.now, s.request(name), Cost(cost))
			}
			s.q.Completed(s.request(name))
		}
		s.pop(a, s.slots-len(s.out))
	case "raise":
		s.queue().Adjust(s.now, s.request(a.words[0]), Cost(s.number(a, "cost", 1)))
	case "late":
		s.queue().TrueUp(s.now, s.request(a.words[0]), Cost(s.number(a, "cost", 1)))
	case "dispatch":
		name := s.named(a)
		s.out[name] = true
		s.queue().Bypassed(s.now, s.request(name))
	case "cancel":
		for _, name := range a.words {
			if !s.queue().Remove(s.request(name)) {
				s.say("%s does not wait", name)
			}
		}
	case "advance":
		s.advance(a.words[0])
	case "requeue":
		delete(s.out, a.words[0])
		s.audit.excused = true
		s.queue().Requeue(s.request(a.words[0]))
	case "drain":
		s.say("%s", s.names(s.queue().Drain(nil)))
	case "print":
		s.print()
	default:
		s.placement(command, a)
	}
}

// placement has the commands that close, open, park and unpark.
func (s *script) placement(command string, a arguments) {
	q := s.queue()
	switch command {
	case "park":
		q.ParkFlow(s.request(a.words[0]))
	case "unpark":
		q.UnparkFlow(q.TierID(a.named["tier"]), a.words[0])
	case "close":
		states := map[string]LaneState{"busy": LaneBusy, "full": LaneFull, "dead": LaneDead}
		q.CloseLane(s.request(a.words[0]), states[a.words[1]])
	case "open":
		if len(a.words) == 0 {
			q.OpenLanes()
		} else {
			q.OpenLane(Lane(strings.Trim(a.words[0], `"`)))
		}
	case "bypass":
		for _, tier := range a.words {
			may, _ := q.MayBypass(s.now, &Request{Tier: q.TierID(tier)}, true)
			s.say("%s: %t", tier, may)
		}
	case "forget":
		q.Forget(0)
	case "next":
		for _, moment := range []struct {
			name string
			ask  func(time.Time) (time.Duration, bool)
		}{
			{"deadline", q.UntilDeadline},
			{"starvation", q.UntilStarvation},
		} {
			if left, ok := moment.ask(s.now); ok {
				s.say("%s in %v", moment.name, left)
			} else {
				s.say("no %s", moment.name)
			}
		}
	default:
		s.Fatalf("unknown command %q", command)
	}
}

func (s *script) configure(command string, a arguments) {
	c := &s.cfg
	switch command {
	case "queue":
		c.TotalCapacity = s.number(a, "total", c.TotalCapacity)
		c.FlowCapacity = s.number(a, "flow", c.FlowCapacity)
		c.QueueTTL = s.duration(a, "ttl", c.QueueTTL)
		c.PromotionBudget = s.millionths(a, "budget", c.PromotionBudget)
		for key, value := range a.named {
			switch key + "=" + value {
			case "capacity=shared":
				c.CapacityMode = Shared
			case "tiers=weighted":
				c.TierMode = Weighted
			case "top=guaranteed", "top=fair":
				c.GuaranteedTop = value == "guaranteed"
			case "discipline=none":
				c.Discipline = OneFlow
			case "discipline=vtc":
				c.Discipline = VTC
			case "tie=arrival", "tie=newcomer":
				c.TieBreak = ByArrival
				if value == "newcomer" {
					c.TieBreak = NewcomerFirst
				}
			}
		}
	case "flow":
		c.Weights, c.FlowCapacities = maps.Clone(c.Weights), maps.Clone(c.FlowCapacities)
		if c.Weights == nil {
			c.Weights, c.FlowCapacities = map[string]Weight{}, map[string]int{}
		}
		c.Weights[a.words[0]] = Weight(s.millionths(a, "weight", int64(c.weight(a.words[0]))))
		if _, ok := a.named["capacity"]; ok {
			c.FlowCapacities[a.words[0]] = s.number(a, "capacity", 0)
		}
	case "tier":
		c.Tiers = slices.Clone(c.Tiers)
		i := slices.IndexFunc(c.Tiers, func(t TierConfig) bool { return t.Name == a.words[0] })
		if i < 0 {
			i = len(c.Tiers)
			c.Tiers = append(c.Tiers, TierConfig{Name: a.words[0], QueueSize: -1})
		}
		t := &c.Tiers[i]
		t.QueueSize = s.number(a, "size", t.QueueSize)
		t.QueueTimeout = s.duration(a, "timeout", t.QueueTimeout)
		t.StarvationThreshold = s.duration(a, "starve", t.StarvationThreshold)
		t.Weight = Weight(s.millionths(a, "weight", int64(t.Weight)))
		if a.has("gone") {
			c.Tiers = slices.Delete(c.Tiers, i, i+1)
		}
	}
}

func (s *script) request(name string) *Request {
	s.Helper()
	r := s.requests[name]
	if r == nil {
		s.Fatalf("there is no request %s", name)
	}
	return r
}

// named makes the next request of a flow, and returns its name.
func (s *script) named(a arguments) string {
	flow := a.words[0]
	s.numbers[flow]++
	name := fmt.Sprintf("%s%d", flow, s.numbers[flow])
	s.requests[name] = &Request{
		Flow: flow, Tier: s.queue().TierID(a.named["tier"]), Lane: Lane(a.named["lane"]), Owner: name,
		Cost: Cost(s.number(a, "cost", 1)),
	}
	return name
}

func (s *script) push(a arguments) {
	name := s.named(a)
	r := s.request(name)
	r.Within = s.duration(a, "deadline", 0)
	displaced, err := s.q.Push(s.now, r)
	switch {
	case err != nil:
		s.say("%s refused: %s", name, nameOf(err))
	case displaced != nil:
		s.say("%s queued, %s displaced", name, displaced.Owner)
	}
}

// pop releases up to n requests and prints them.
func (s *script) pop(a arguments, n int) {
	admit := Allowed{Tiers: AllTiers, Promote: a.has("promote")}
	if only, ok := a.named["only"]; ok {
		admit.Tiers = 0
		for name := range strings.SplitSeq(only, ",") {
			if name != "" {
				admit.Tiers = admit.Tiers.With(s.queue().TierID(name))
			}
		}
	}
	var released []string
	for range n {
		c := s.queue().Peek(s.now, admit)
		if c.Request == nil {
			break
		}
		s.q.Pop(c)
		name := c.Request.Owner.(string)
		s.out[name] = true
		if c.Promoted {
			name += "(promoted)"
		}
		released = append(released, name)
	}
	if len(released) == 0 {
		released = []string{"nobody"}
	}
	s.say("%s", strings.Join(released, " "))
}

func (s *script) advance(by string) {
	d, err := time.ParseDuration(by)
	if err != nil {
		s.Fatal(err)
	}
	s.now = s.now.Add(d)
	for _, r := range expire(s.queue(), s.now) {
		why := "its deadline"
		if s.queue().TTLOver(s.now, r) {
			why = "TTL"
		}
		s.say("%s expired: %s", r.Owner, why)
	}
}

func (s *script) names(requests []*Request) string {
	var names []string
	for _, r := range requests {
		names = append(names, r.Owner.(string))
	}
	return strings.Join(names, " ")
}

func (s *script) print() {
	s.say("%d waiting, %d flows", s.queue().Len(), s.q.Flows())
	for _, t := range s.q.tiers {
		flows := map[string][]*Request{}
		for r := range s.q.due.all() {
			if r.flowLane.flow.class.tier == t {
				flows[r.flowLane.flow.key] = append(flows[r.flowLane.flow.key], r)
			}
		}
		removed := ""
		if t.removed {
			removed = " (removed)"
		}
		if len(flows) == 0 && len(s.q.tiers) > 1 {
			s.say("%s%s: nobody", t.config.Name, removed)
		}
		for _, key := range slices.Sorted(maps.Keys(flows)) {
			slices.SortFunc(flows[key], func(a, b *Request) int { return int(a.seq) - int(b.seq) })
			s.say("%s%s, flow %s: %s", t.config.Name, removed, key, s.names(flows[key]))
		}
	}
}
