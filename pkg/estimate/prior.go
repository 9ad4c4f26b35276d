package estimate

// ratios counts the flows of a model by their ratio, in buckets, and computes the prior.
type ratios struct {
	// prior is derived from the rest.
	prior   ratio
	cold    ratio
	flows   int64
	buckets [maxRatio/ratioBucket - minRatio/ratioBucket + 1]uint16 // MaxFlows fits
}

// ratioBucket is the width of a bucket. A ratio counts as the lower end of its bucket.
const ratioBucket = ratioOne / 64

// One flow moves the prior by a factor of at most priorStep/priorUnit.
const (
	priorStep = 109
	priorUnit = 100
)

func bucketOf(r ratio) int { return int(r/ratioBucket - minRatio/ratioBucket) }

func ratioOf(bucket int) ratio { return ratio(bucket)*ratioBucket + minRatio }

// configure sets the cold ratio.
func (rs *ratios) configure(cold ratio) {
	rs.cold = cold
	rs.update()
}

// move replaces the ratio of a flow, which is 0 if it had none.
func (rs *ratios) move(have *ratio, to ratio) {
	from := *have
	*have = to
	if from != 0 && bucketOf(from) == bucketOf(to) {
		return
	}
	rs.count(from, -1)
	rs.count(to, 1)
	rs.update()
}

// remove forgets the ratio of a flow, if it had one.
func (rs *ratios) remove(have ratio) {
	rs.count(have, -1)
	rs.update()
}

func (rs *ratios) count(r ratio, by int64) {
	if r != 0 {
		rs.buckets[bucketOf(r)] += uint16(by) // -1 wraps, which subtracts
		rs.flows += by
	}
}

// update derives the prior: the median of all flows and of cold, held back by the rule in the package comment.
func (rs *ratios) update() {
	middle := (rs.flows + 1) / 2 // votes on each side of the median, with cold's one or two
	above, below, at := int64(0), int64(0), bucketOf(rs.cold)
	for b, n := range rs.buckets {
		switch {
		case b > at:
			above += int64(n)
		case b < at:
			below += int64(n)
		}
	}
	switch {
	case above > middle:
		rs.prior = rs.pulled(above-middle, 1)
	case below > middle:
		rs.prior = rs.pulled(below-middle, -1)
	default:
		rs.prior = rs.cold
	}
}

// pulled returns the prior if the median lies on one side of cold, at the k-th flow outwards: k flows would have to
// change to bring it back. The i-th of them moves the prior to its own ratio, or by one step.
func (rs *ratios) pulled(k int64, side int) ratio {
	prior := rs.cold
	for b := bucketOf(rs.cold) + side; k > 0; b += side {
		n := min(int64(rs.buckets[b]), k)
		k -= n
		for ; n > 0 && prior != ratioOf(b); n-- {
			if side > 0 {
				prior = min(prior*priorStep/priorUnit, ratioOf(b))
			} else {
				prior = max((prior*priorUnit+priorStep-1)/priorStep, ratioOf(b))
			}
		}
	}
	return prior
}
