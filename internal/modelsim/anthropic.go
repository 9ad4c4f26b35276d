package modelsim

import "strconv"

// messagesHead appends the fields that begin a message.
func (a *answer) messagesHead(dst []byte) []byte {
	dst = append(dst, `{"id":"msg_`...)
	dst = appendID(dst, a.key)
	dst = append(dst, `","type":"message","role":"assistant","model":`...)
	return append(dst, a.model...)
}

// messagesUsage appends the usage with the given number of output tokens.
func (a *answer) messagesUsage(dst []byte, output int) []byte {
	dst = append(dst, `"usage":{"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(a.promptTokens()), 10)
	dst = field(dst, "output_tokens", output)
	return append(dst, '}')
}

func (a *answer) messagesStop(dst []byte) []byte {
	dst = append(dst, `"stop_reason":"`...)
	dst = append(dst, a.finish(0, "max_tokens", "end_turn")...)
	return append(dst, `","stop_sequence":null`...)
}

func (a *answer) messagesWhole(dst []byte) []byte {
	dst = a.messagesHead(dst)
	dst = append(dst, `,"content":[{"type":"text","text":"`...)
	dst = a.text(dst, 0, 0, a.tokens[0])
	dst = append(dst, `"}],`...)
	dst = a.messagesStop(dst)
	dst = append(dst, ',')
	dst = a.messagesUsage(dst, a.outputTokens())
	return append(dst, '}')
}

func (a *answer) messagesToken(dst []byte, from, to int) []byte {
	if from == 0 {
		dst = append(dst, "event: message_start\ndata: "+`{"type":"message_start","message":`...)
		dst = a.messagesHead(dst)
		dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,`...)
		dst = a.messagesUsage(dst, 0)
		dst = append(dst, "}}\n\n"...)
		dst = append(dst, "event: content_block_start\ndata: "+
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n"...)
	}
	dst = append(dst, "event: content_block_delta\ndata: "+
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`...)
	dst = a.text(dst, 0, from, to)
	return append(dst, `"}}`+"\n\n"...)
}

func (a *answer) messagesClosing(dst []byte) []byte {
	dst = append(dst, "event: content_block_stop\ndata: "+`{"type":"content_block_stop","index":0}`+"\n\n"...)
	dst = append(dst, "event: message_delta\ndata: "+`{"type":"message_delta","delta":{`...)
	dst = a.messagesStop(dst)
	dst = append(dst, "},"...)
	dst = a.messagesUsage(dst, a.outputTokens())
	dst = append(dst, "}\n\n"...)
	return append(dst, "event: message_stop\ndata: "+`{"type":"message_stop"}`+"\n\n"...)
}
