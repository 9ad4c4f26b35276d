package modelsim

import "strconv"

// api is one of the inference APIs.
type api uint8

const (
	chat api = iota
	completions
	messages
	responses
)

// apiPaths says where each API is served, apis how many there are.
var apiPaths = [...]string{"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"}

const apis = len(apiPaths)

func (a api) promptKey() string { return [apis]string{"messages", "prompt", "messages", "input"}[a] }

func (a api) limitKeys() []string {
	return [apis][]string{chatLimitKeys, completionLimitKeys, completionLimitKeys, responsesLimitKeys}[a]
}

// answer is everything that the text of an answer is made of.
type answer struct {
	key          uint64 // fixes the texts and the ID
	created      int64  // Unix seconds
	model        string // the served model's name as JSON, with its quotes
	prompts      []int  // tokens of each prompt
	tokens       []int  // produced by each answer of each prompt
	limit        int    // output limit of each answer
	includeUsage bool

	sent  []int // tokens of each answer that the stream has sent
	event int   // number of the stream's next event, where events are numbered
}

// promptTokens returns the usage's input: each prompt once, however many answers it gets.
func (a *answer) promptTokens() int { return sum(a.prompts) }

// outputTokens returns the usage's output: of all answers.
func (a *answer) outputTokens() int { return sum(a.tokens) }

// finish returns the finish reason: limited if the answer reached its limit, otherwise itself.
func (a *answer) finish(choice int, limited, itself string) string {
	if a.tokens[choice] >= a.limit {
		return limited
	}
	return itself
}

// text appends a part of a choice's text.
func (a *answer) text(dst []byte, choice, from, to int) []byte {
	return appendText(dst, mix(a.key)+uint64(choice)<<32, from, to)
}

// whole appends the text of a JSON answer.
func (a *answer) whole(dst []byte, api api) []byte {
	switch api {
	case chat, completions:
		return a.openAIWhole(dst, api)
	case messages:
		return a.messagesWhole(dst)
	case responses:
		return a.responseObject(dst, "completed")
	}
	return dst
}

// opening appends the events of a stream that come with the headers.
func (a *answer) opening(dst []byte, api api) []byte {
	if api == responses {
		return a.responsesOpening(dst)
	}
	return dst
}

// news appends the events for the tokens that the stream has not sent yet.
func (a *answer) news(dst []byte, api api, tokens []int) []byte {
	copy(a.tokens, tokens)
	for choice, n := range tokens {
		from := a.sent[choice]
		if n == from {
			continue
		}
		a.sent[choice] = n
		switch api {
		case chat, completions:
			dst = a.openAIToken(dst, api, choice, from, n)
		case messages:
			dst = a.messagesToken(dst, from, n)
		case responses:
			dst = a.responsesToken(dst, from, n)
		}
	}
	return dst
}

// closing appends the stream's last events.
func (a *answer) closing(dst []byte, api api) []byte {
	switch api {
	case chat, completions:
		return a.openAIClosing(dst, api)
	case messages:
		return a.messagesClosing(dst)
	case responses:
		return a.responsesClosing(dst)
	}
	return dst
}

// field appends a comma, a key and a whole number.
func field(dst []byte, key string, n int) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	return strconv.AppendInt(dst, int64(n), 10)
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}
