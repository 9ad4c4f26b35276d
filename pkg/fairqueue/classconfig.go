package fairqueue

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// MinAgeing and MaxAgeing are the range of ClassConfig.Ageing.
const (
	MinAgeing = time.Second
	MaxAgeing = 24 * time.Hour
)

func checkAgeing(ps *invalid.Problems, at invalid.Path, d time.Duration) {
	if d != 0 {
		invalid.Within(ps, at, d, MinAgeing, MaxAgeing)
	}
}

// checkClasses checks Classes. A ring's classes need not follow each other.
func (c *Config) checkClasses(ps *invalid.Problems) {
	at := invalid.At("Classes")
	if n := len(c.Classes); n > MaxClassesInAll {
		ps.Add(at, invalid.Shown(fmt.Sprintf("%d classes", n)), "must be at most %d", MaxClassesInAll)
	}
	names, sizes := map[string]*invalid.Names{}, map[string]int{}
	for i, class := range c.Classes {
		if names[class.Ring] == nil {
			names[class.Ring] = new(invalid.Names)
		}
		names[class.Ring].Check(ps, at.At(i, "Name"), class.Name)
		if sizes[class.Ring]++; sizes[class.Ring] == MaxClasses+1 {
			n := 0
			for _, other := range c.Classes {
				if other.Ring == class.Ring {
					n++
				}
			}
			ps.Add(at, invalid.Shown(fmt.Sprintf("%d classes in the ring %q", n, class.Ring)), "must be at most %d", MaxClasses)
		}
		class.check(ps, at.At(i))
	}
}

func (c *ClassConfig) check(ps *invalid.Problems, at invalid.Path) {
	if n := len(c.Name); n > MaxClassName {
		ps.Add(at.At("Name"), c.Name, "must have at most %d bytes, not %d", MaxClassName, n)
	}
	if n := len(c.Ring); n > MaxClassName {
		ps.Add(at.At("Ring"), c.Ring, "must have at most %d bytes, not %d", MaxClassName, n)
	}
	invalid.Within(ps, at.At("Quantum"), c.Quantum, 1, MaxCost)
	checkAgeing(ps, at.At("Ageing"), c.Ageing)
	c.Limits.check(ps, at.At("Limits"))
}
