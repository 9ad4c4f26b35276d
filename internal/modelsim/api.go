package modelsim

import (
	"net/http"
	"strconv"

	"github.com/weir-epp/weir/internal/splitmix"
)

// api is one of the inference APIs.
type api uint8

const (
	chat api = iota
	completions
	messages
	responses
)

// apiPaths has the path of each API, apis is their number.
var apiPaths = [...]string{"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"}

const apis = len(apiPaths)

func (a api) promptKey() string { return [apis]string{"messages", "prompt", "messages", "input"}[a] }

func (a api) limitKeys() []string {
	return [apis][]string{chatLimitKeys, completionLimitKeys, completionLimitKeys, responsesLimitKeys}[a]
}

// answer has all data for the text of an answer.
type answer struct {
	key          uint64 // fixes the texts and the ID
	created      int64  // Unix seconds
	model        string // the served model's name as JSON, with its quotes
	prompts      []int  // tokens of each prompt
	tokens       []int  // produced by each answer of each prompt
	cached       []int  // cached tokens of each answer's prompt
	limit        int    // output limit of each answer
	includeUsage bool
	details      bool // the usage states the cached tokens

	sent  []int // tokens of each answer that the stream has sent
	event int   // number of the stream's next event, where events are numbered
}

// promptTokens returns the usage's input: each prompt once, however many answers it gets.
func (a *answer) promptTokens() int { return sum(a.prompts) }

// cachedTokens returns the cached part of promptTokens: each prompt's for its first answer.
func (a *answer) cachedTokens() int {
	total, choices := 0, len(a.cached)/len(a.prompts)
	for i := range a.prompts {
		total += a.cached[i*choices]
	}
	return total
}

// outputTokens returns the usage's output: of all answers.
func (a *answer) outputTokens() int { return sum(a.tokens) }

// finish returns the finish reason: limited if the answer reached its limit, otherwise itself (it ended by itself).
func (a *answer) finish(choice int, limited, itself string) string {
	if a.tokens[choice] >= a.limit {
		return limited
	}
	return itself
}

// text appends a part of a choice's text.
func (a *answer) text(dst []byte, choice, from, to int) []byte {
	return appendText(dst, splitmix.Mix(a.key)+uint64(choice)<<32, from, to)
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

// opening appends the stream events sent with the headers.
func (a *answer) opening(dst []byte, api api) []byte {
	if api == responses {
		return a.responsesOpening(dst)
	}
	return dst
}

// news appends the events for the tokens not sent yet.
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

// words are the tokens of all texts. None needs escaping in JSON, and each is one token.
var words = [...]string{
	" weir", " river", " flow", " level", " gate", " bank", " stone", " reed", " pool", " spring", " tide", " mill",
	" bridge", " current", " delta", " eddy", " ford", " heron", " island", " lock", " marsh", " oar", " pebble",
	" quay", " rapid", " sluice", " trout", " upstream", " valley", " wave", " willow", " brook",
}

// appendText appends the tokens in [from, to) of the text that the key determines.
func appendText(dst []byte, key uint64, from, to int) []byte {
	for i := from; i < to; i++ {
		word := words[splitmix.Mix(key+uint64(i))%uint64(len(words))]
		if i == 0 {
			word = word[1:]
		}
		dst = append(dst, word...)
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// appendID appends 24 hexadecimal digits that the key determines.
func appendID(dst []byte, key uint64) []byte {
	high, low := splitmix.Mix(key), splitmix.Mix(key^0xa5a5a5a5)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[high>>shift&15])
	}
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[low>>shift&15])
	}
	return dst
}

// failureBody returns an error body in the API's shape.
func failureBody(api api, status int, message string) []byte {
	kind := failureKind(status)
	if api == messages {
		body := append([]byte(`{"type":"error","error":{"type":"`), kind...)
		body = append(body, `","message":`...)
		body = append(body, quoted(message)...)
		return append(body, "}}"...)
	}
	body := append([]byte(`{"error":{"message":`), quoted(message)...)
	body = append(body, `,"type":"`...)
	body = append(body, kind...)
	body = append(body, `","param":null`...)
	body = field(body, "code", status)
	return append(body, "}}"...)
}

// failureKind names a status as vLLM does.
func failureKind(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusTooManyRequests:
		return "RateLimitError"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableError"
	}
	if status >= 500 {
		return "InternalServerError"
	}
	return strconv.Itoa(status)
}
