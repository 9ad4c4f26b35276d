package modelsim

import "strconv"

// responseObject appends the response in one of the states in_progress and completed.
func (a *answer) responseObject(dst []byte, status string) []byte {
	dst = append(dst, `{"id":"resp_`...)
	dst = appendID(dst, a.key)
	dst = append(dst, `","object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, a.created, 10)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, status...)
	dst = append(dst, `","model":`...)
	dst = append(dst, a.model...)
	dst = field(dst, "max_output_tokens", a.limit)
	dst = append(dst, `,"error":null,"incomplete_details":null,"instructions":null,"metadata":null,`+
		`"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"output":[`...)
	if status != "completed" {
		return append(dst, `],"usage":null}`...)
	}
	dst = a.responsesItem(dst, status)
	in, out := a.promptTokens(), a.outputTokens()
	dst = append(dst, `],"usage":{"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(in), 10)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, int64(a.cachedTokens()), 10)
	dst = append(dst, '}')
	dst = field(dst, "output_tokens", out)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":0}`...)
	dst = field(dst, "total_tokens", in+out)
	return append(dst, "}}"...)
}

// responsesItem appends the one output message, empty unless completed.
func (a *answer) responsesItem(dst []byte, status string) []byte {
	dst = append(dst, `{"id":`...)
	dst = a.itemID(dst)
	dst = append(dst, `,"type":"message","role":"assistant","status":"`...)
	dst = append(dst, status...)
	dst = append(dst, `","content":[`...)
	if status == "completed" {
		dst = a.responsesPart(dst, a.tokens[0])
	}
	return append(dst, "]}"...)
}

// responsesPart appends the text part with the given number of tokens.
func (a *answer) responsesPart(dst []byte, tokens int) []byte {
	dst = append(dst, `{"type":"output_text","text":"`...)
	dst = a.text(dst, 0, 0, tokens)
	return append(dst, `","annotations":[],"logprobs":null}`...)
}

func (a *answer) itemID(dst []byte) []byte {
	dst = append(dst, `"msg_`...)
	dst = appendID(dst, a.key)
	return append(dst, '"')
}

// responsesEvent appends the start of a numbered event, up to its own fields.
func (a *answer) responsesEvent(dst []byte, kind string) []byte {
	dst = append(dst, "event: response."...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: "+`{"type":"response.`...)
	dst = append(dst, kind...)
	dst = append(dst, '"')
	dst = field(dst, "sequence_number", a.event)
	a.event++
	return append(dst, ',')
}

// responsesPlace appends the fields that identify a part of the output.
func (a *answer) responsesPlace(dst []byte) []byte {
	dst = append(dst, `"output_index":0,"content_index":0,"item_id":`...)
	return a.itemID(dst)
}

func (a *answer) responsesOpening(dst []byte) []byte {
	for _, kind := range []string{"created", "in_progress"} {
		dst = a.responsesEvent(dst, kind)
		dst = append(dst, `"response":`...)
		dst = a.responseObject(dst, "in_progress")
		dst = append(dst, "}\n\n"...)
	}
	return dst
}

func (a *answer) responsesToken(dst []byte, from, to int) []byte {
	if from == 0 {
		dst = a.responsesEvent(dst, "output_item.added")
		dst = append(dst, `"output_index":0,"item":`...)
		dst = a.responsesItem(dst, "in_progress")
		dst = append(dst, "}\n\n"...)
		dst = a.responsesEvent(dst, "content_part.added")
		dst = a.responsesPlace(dst)
		dst = append(dst, `,"part":`...)
		dst = a.responsesPart(dst, 0)
		dst = append(dst, "}\n\n"...)
	}
	dst = a.responsesEvent(dst, "output_text.delta")
	dst = a.responsesPlace(dst)
	dst = append(dst, `,"logprobs":[],"delta":"`...)
	dst = a.text(dst, 0, from, to)
	return append(dst, `"}`+"\n\n"...)
}

func (a *answer) responsesClosing(dst []byte) []byte {
	dst = a.responsesEvent(dst, "output_text.done")
	dst = a.responsesPlace(dst)
	dst = append(dst, `,"logprobs":[],"text":"`...)
	dst = a.text(dst, 0, 0, a.tokens[0])
	dst = append(dst, `"}`+"\n\n"...)

	dst = a.responsesEvent(dst, "content_part.done")
	dst = a.responsesPlace(dst)
	dst = append(dst, `,"part":`...)
	dst = a.responsesPart(dst, a.tokens[0])
	dst = append(dst, "}\n\n"...)

	dst = a.responsesEvent(dst, "output_item.done")
	dst = append(dst, `"output_index":0,"item":`...)
	dst = a.responsesItem(dst, "completed")
	dst = append(dst, "}\n\n"...)

	dst = a.responsesEvent(dst, "completed")
	dst = append(dst, `"response":`...)
	dst = a.responseObject(dst, "completed")
	return append(dst, "}\n\n"...)
}
