package modelsim

import (
	"bytes"
	"net/http"
)

// preparedAnswer is an API's answer in bytes, made once.
type preparedAnswer struct {
	whole       []byte
	stream      []byte
	streamUsage []byte // with include_usage
}

// prepare makes the answer of one API, with one prompt token and the default output.
func (h *Handler) prepare(api api) preparedAnswer {
	tokens := []int{h.cfg.DefaultOutputTokens}
	in := inference{prompts: []int{1}, choices: 1, limit: tokens[0]}
	stream := func(includeUsage bool) []byte {
		in.includeUsage = includeUsage
		a := h.answerTo(&in, 0)
		events := a.opening(nil, api)
		for n := range tokens[0] {
			events = a.news(events, api, []int{n + 1})
		}
		return a.closing(events, api)
	}
	a := h.answerTo(&in, 0)
	copy(a.tokens, tokens)
	return preparedAnswer{whole: a.whole(nil, api), stream: stream(false), streamUsage: stream(true)}
}

// instant sends the prepared answer.
func (v *visit) instant(body []byte) {
	prepared := &v.h.prepared[v.api]
	v.firstToken()
	var err error
	if asksFor(body, "stream") {
		events := prepared.stream
		if asksFor(body, "include_usage") {
			events = prepared.streamUsage
		}
		v.headers(streamType)
		if v.quirk.Reset == ResetMidAnswer {
			_ = v.write(events[:len(events)/2])
			v.reset()
		}
		err = v.write(events)
	} else {
		err = v.whole(http.StatusOK, prepared.whole)
	}
	v.outcome = Completed
	if err != nil {
		v.outcome = Aborted
	}
}

// asksFor reports whether the JSON has the key with the value true anywhere. Quotes within strings are escaped, so a
// string cannot imitate the key, but a nested object may contain it.
func asksFor(body []byte, key string) bool {
	for {
		i := bytes.Index(body, []byte(key))
		if i < 0 {
			return false
		}
		before, after := body[:i], body[i+len(key):]
		body = after
		if len(before) == 0 || before[len(before)-1] != '"' || len(after) == 0 || after[0] != '"' {
			continue
		}
		value := bytes.TrimLeft(after[1:], " \t\r\n")
		if len(value) == 0 || value[0] != ':' {
			continue
		}
		if bytes.HasPrefix(bytes.TrimLeft(value[1:], " \t\r\n"), []byte("true")) {
			return true
		}
	}
}
