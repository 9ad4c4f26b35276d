package scheduling

// An endpoint reads the prompts that it was given one after the other, so a request waits for those before its own. prompts(e)
// are the tokens that e has to read of all prompts whose first tokens have not come, as far as those will be seen. Weir
// guesses no first token: tokens that were taken to be read at half of the true rate cost more than not to count them.

// Read is PromptRead where no busy rule depends on it.
func (b *Board) Read(r *Reservation) {
	if len(b.busy) == 0 {
		b.PromptRead(r)
	}
}

// mostUnread is more than any endpoint can have to read.
const mostUnread = 1 << 60

// fewness is the more the less the endpoint has to read.
func (s *spot) fewness() Standing { return Standing(mostUnread - s.prompts) }

// fewestUnread returns the tournament of the endpoints by their tokens to read. It is kept only where it is asked for.
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
