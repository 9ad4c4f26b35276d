package scheduling

// Score is how good an endpoint is in one scorer's eyes: 0 to ScoreOne.
type Score int64

// ScoreOne is the best Score. With at most 16 scorers of a weight of at most 1000 a total stays below 2^54.
const ScoreOne Score = 1 << 40

// Total is a sum of scores times weights.
type Total int64

// scorer rates one endpoint without looking at the others. A new one is a file with a value of this type, and a line
// in the registry. It sets one of the two functions.
type scorer struct {
	name string
	// live rates the endpoint with what is in flight there. It is asked when that changes, not at a pick.
	live func(e *Endpoint, inFlight int) Score
	// request rates the endpoint for the request (a prefix that it has cached, a session that it knows). It is asked
	// once, before the lock.
	request func(c *constraint, e *Endpoint) Score
}

// scorers is the registry, in order of name.
var scorers = []scorer{leastStock}

func scorerByName(name string) (scorer, bool) {
	for _, s := range scorers {
		if s.name == name {
			return s, true
		}
	}
	return scorer{}, false
}

func scorerNames() []string {
	names := make([]string, 0, len(scorers))
	for _, s := range scorers {
		names = append(names, s.name)
	}
	return names
}

// weighted is a scorer with its say.
type weighted struct {
	scorer
	weight int64
}

func (w weighted) of(s Score) Total { return Total(w.weight * int64(s)) }
