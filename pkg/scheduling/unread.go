package scheduling

// An endpoint reads its prompts one after the other, so a request waits for the earlier ones. prompts(e) are the tokens
// that e has yet to read, of prompts whose first token will be seen. Weir does not guess first tokens: assuming half of
// the true reading rate cost more than not counting the tokens.

// mostUnread is more than any endpoint can have to read.
const mostUnread = 1 << 60

// fewness rises as the endpoint has less to read.
func (s *spot) fewness() Standing { return Standing(mostUnread - s.prompts) }

// fewestUnread returns the tournament of the endpoints by their tokens to read. It is built at the first call, and kept
// up to date afterwards.
func (b *Board) fewestUnread() *tournament {
	if !b.seated {
		b.fewest.enter(len(b.spots), false)
		for p := range b.spots {
			b.fewest.seat(p, b.spots[p].fewness())
		}
		b.fewest.play()
		b.seated = true
	}
	return &b.fewest
}
