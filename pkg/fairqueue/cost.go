package fairqueue

// Cost is the work that a request stands for, in the unit of its profile: 1 per request in wfq, tokens in the token
// profiles. Range 1 to MaxCost; a cost outside is clamped into it.
type Cost int64

// MaxCost is the largest cost of one request.
const MaxCost Cost = 1 << 30

func (c Cost) clamp() Cost { return max(1, min(c, MaxCost)) }
