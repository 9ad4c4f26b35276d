package modelsim

import "strconv"

// openAIHead appends the fields that begin every object of the chat and completions APIs.
func (a *answer) openAIHead(dst []byte, api api, object string) []byte {
	prefix := `{"id":"chatcmpl-`
	if api == completions {
		prefix = `{"id":"cmpl-`
	}
	dst = append(dst, prefix...)
	dst = appendID(dst, a.key)
	dst = append(dst, `","object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, a.created, 10)
	dst = append(dst, `,"model":`...)
	dst = append(dst, a.model...)
	return append(dst, `,"choices":[`...)
}

func (a *answer) openAIUsage(dst []byte) []byte {
	in, out := a.promptTokens(), a.outputTokens()
	dst = append(dst, `,"usage":{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(in), 10)
	dst = field(dst, "total_tokens", in+out)
	dst = field(dst, "completion_tokens", out)
	cached := a.cachedTokens()
	if !a.details || cached == 0 { // as in vLLM, null for none
		return append(dst, `,"prompt_tokens_details":null}`...)
	}
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, int64(cached), 10)
	return append(dst, "}}"...)
}

func (a *answer) openAIWhole(dst []byte, api api) []byte {
	object := "chat.completion"
	if api == completions {
		object = "text_completion"
	}
	dst = a.openAIHead(dst, api, object)
	for choice, n := range a.tokens {
		if choice > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, int64(choice), 10)
		if api == chat {
			dst = append(dst, `,"message":{"role":"assistant","content":"`...)
		} else {
			dst = append(dst, `,"text":"`...)
		}
		dst = a.text(dst, choice, 0, n)
		dst = append(dst, '"')
		if api == chat {
			dst = append(dst, `,"refusal":null,"tool_calls":[]}`...)
		}
		dst = append(dst, `,"logprobs":null,"finish_reason":"`...)
		dst = append(dst, a.finish(choice, "length", "stop")...)
		dst = append(dst, `","stop_reason":null}`...)
	}
	dst = append(dst, ']')
	dst = a.openAIUsage(dst)
	return append(dst, '}')
}

func (a *answer) openAIToken(dst []byte, api api, choice, from, to int) []byte {
	if api == completions {
		dst = a.openAIChunk(dst, api, choice)
		dst = append(dst, `"text":"`...)
		dst = a.text(dst, choice, from, to)
		return append(dst, `","logprobs":null,"finish_reason":null,"stop_reason":null}]}`+"\n\n"...)
	}
	if from == 0 {
		dst = a.openAIChunk(dst, api, choice)
		dst = append(dst, `"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
	}
	dst = a.openAIChunk(dst, api, choice)
	dst = append(dst, `"delta":{"content":"`...)
	dst = a.text(dst, choice, from, to)
	return append(dst, `"},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
}

// openAIChunk appends the beginning of a stream's event, up to the choice's index.
func (a *answer) openAIChunk(dst []byte, api api, choice int) []byte {
	dst = append(dst, "data: "...)
	dst = a.openAIHead(dst, api, openAIChunkObject(api))
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	return append(dst, ',')
}

func openAIChunkObject(api api) string {
	if api == completions {
		return "text_completion"
	}
	return "chat.completion.chunk"
}

func (a *answer) openAIClosing(dst []byte, api api) []byte {
	for choice := range a.tokens {
		dst = a.openAIChunk(dst, api, choice)
		if api == completions {
			dst = append(dst, `"text":""`...)
		} else {
			dst = append(dst, `"delta":{}`...)
		}
		dst = append(dst, `,"logprobs":null,"finish_reason":"`...)
		dst = append(dst, a.finish(choice, "length", "stop")...)
		dst = append(dst, `","stop_reason":null}]}`+"\n\n"...)
	}
	if a.includeUsage {
		dst = append(dst, "data: "...)
		dst = a.openAIHead(dst, api, openAIChunkObject(api))
		dst = append(dst, ']')
		dst = a.openAIUsage(dst)
		dst = append(dst, "}\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}
