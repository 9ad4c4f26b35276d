package body

import (
	"encoding/json"
	"strings"
	"testing"
)

// The length of a prompt, in the shapes of the APIs.
func TestPrompt(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgoAZz+/x9", 100) + "=="
	type size struct{ text, numbers, media, prompts int64 }
	for _, c := range []struct {
		name, body string
		want       size
	}{
		{"chat", `{"messages":[{"role":"user","content":"Hello"}]}`, size{9, 0, 0, 1}},
		{"chat in parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"Hello"},"more"]}]}`, size{17, 0, 0, 1}},
		{"an image in it", `{"messages":[{"content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			image + `","detail":"low"}}]}]}`, size{4 + 11 + 9 + 3, 0, 1, 1}},
		{"an image on the web", `{"messages":[{"content":[{"image_url":{"url":"https://x/y.png"}}]}]}`, size{15, 0, 1, 1}},
		{"sound", `{"messages":[{"content":[{"input_audio":{"data":"` + image + `","format":"wav"}}]}]}`, size{3, 0, 1, 1}},
		{"sound that no API defines", `{"messages":[{"content":[{"sound":{"data":"` + image + `","format":"wav"}}]}]}`, size{int64(len(image)) + 3, 0, 0, 1}},
		{"what a tool was called with", `{"messages":[{"tool_calls":[{"function":{"arguments":{"input_audio":{"data":"` + image + `"}}}}]}]}`, size{int64(len(`{"input_audio":{"data":""}}` + image)), 0, 0, 1}},
		{"data URLs in it", `{"messages":[{"content":[{"input":{"image_url":"data:image/png;base64,` + image + `"}}]}]}`, size{int64(len(`{"image_url":"data:image/png;base64,"}` + image)), 0, 0, 1}},
		{"data beside a medium", `{"messages":[{"content":[{"input_audio":{"x":{"data":"` + image + `"}},"data":"` + image + `"}]}]}`, size{2 * int64(len(image)), 0, 0, 1}},
		{"an image of Anthropic's", `{"system":"Be kind.","messages":[{"content":[{"source":{"type":"base64","data":"` + image + `"}}]}]}`, size{8 + 6, 0, 1, 1}},
		{"a text of Anthropic's", `{"messages":[{"content":[{"source":{"type":"text","data":"It was a dark and stormy night; the rain fell in torrents, except"}}]}]}`, size{4 + 65, 0, 0, 1}},
		{"data deeper than a medium", `{"messages":[{"input_audio":{"content":{"data":"` + image + `"}}}]}`, size{int64(len(image)), 0, 0, 1}},
		{"data behind a medium", `{"messages":[{"input_audio":{"format":"wav"},"image":{"data":"` + image + `"}}]}`, size{3 + int64(len(image)), 0, 0, 1}},
		{"a medium around another", `{"messages":[{"input_audio":{"source":{"type":"a"},"data":"` + image + `"}}]}`, size{1, 0, 1, 1}},
		{"without blanks", `{"messages":[{"content":[{"source":{"type":"base64","data":"` + image + `","type":"text"}}]}]}`, size{6 + 4 + int64(len(image)), 0, 0, 1}},
		{"an image of Responses'", `{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,` + image + `"}]}]}`, size{11, 0, 1, 1}},
		{"an image with its keys escaped", `{"messages":[{"content":[{"image_url":{"\u0075rl":"https://x/y.png"}}]}]}`, size{15, 0, 1, 1}},
		{"a file that the engine keeps", `{"input":[{"content":[{"type":"input_file","file_id":"file-1"}]}]}`, size{16, 0, 1, 1}},
		{"a file without a name", `{"input":[{"content":[{"type":"input_file","file_id":""}]}]}`, size{10, 0, 0, 1}},
		{"earlier turns that the engine keeps", `{"input":"abc","previous_response_id":"resp_1"}`, size{3, 0, 1, 1}},
		{"the last of two says none", `{"input":"abc","previous_response_id":"resp_1","previous_response_id":null}`, size{3, 0, 0, 1}},
		{"each counts", `{"input":"abc","previous_response_id":"resp_1","conversation":null}`, size{3, 0, 1, 1}},
		{"a conversation", `{"input":"abc","conversation":{"id":"conv_1"}}`, size{3, 0, 1, 1}},
		{"two images", `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,` + image + `"}},{"image_url":"https://x"}]}]}`, size{9, 0, 2, 1}},
		{"text that looks like a URL is text", `{"prompt":"data:text/plain;base64,` + image + `"}`, size{int64(23 + len(image)), 0, 0, 1}},
		{"also behind an object", `{"messages":[{"content":[{"url":"x"},"data:text/plain;base64,` + image + `"]}]}`, size{int64(24 + len(image)), 0, 1, 1}},
		{"tools as they are", `{"messages":[],"tools":[ {"function":{"name":"f"}} ]}`, size{29, 0, 0, 1}},
		{"instructions", `{"instructions":"abc","input":"de"}`, size{5, 0, 0, 1}},
		{"nothing else", `{"model":"m","user":"somebody","metadata":{"a":"b"},"stop":["x"]}`, size{0, 0, 0, 1}},
		{"one prompt", `{"prompt":"abc"}`, size{3, 0, 0, 1}},
		{"three prompts", `{"prompt":["abc","d",""]}`, size{4, 0, 0, 3}},
		{"a prompt by number", `{"prompt":[1,22,333]}`, size{0, 3, 0, 1}},
		{"two of them", `{"prompt":[[1,22,333],[4]]}`, size{0, 4, 0, 2}},
		{"inputs get no answers", `{"input":["abc","d"]}`, size{4, 0, 0, 1}},
		{"two chats", `{"messages":[[{"content":"ab"}],[{"content":"c"},{"content":"d"}]]}`, size{4, 0, 0, 2}},
		{"text as a key", `{"messages":[{"content":[{"input":{"` + strings.Repeat("many words ", 10) + `":0,"data":1}}]}]}`, size{110 + 15, 0, 0, 1}},
		{"numbers elsewhere are no tokens", `{"messages":[{"content":"a","seed":5}],"logit_bias":[1,2]}`, size{1, 0, 0, 1}},
		{"escapes", `{"prompt":"\n\"\u00e9\u20ac\u0041\ud83d\ude00"}`, size{1 + 1 + 2 + 3 + 1 + 4, 0, 0, 1}},
		{"the last of duplicates", `{"prompt":["abc","d"],"prompt":"x"}`, size{1, 0, 0, 1}},
		{"no list of prompts", `{"prompt":{"a":["b","c"]}}`, size{2, 0, 0, 1}},
	} {
		f, err := scan([]byte(c.body))
		if got := (size{f.Prompt.Text, f.Prompt.Numbers, f.Prompt.Media, f.Prompt.Prompts}); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

// Each message has tokens around it, even an empty one, and so has each text of a list that is embedded or compared.
func TestFrames(t *testing.T) {
	for _, c := range []struct {
		name, body   string
		prompt, pair int64
	}{
		{"messages", `{"messages":[{"role":"user","content":""},{},{"role":"tool","content":[{"type":"text","text":""},{}]}]}`, 12, 0},
		{"two chats", `{"messages":[[{}],[{},{}]]}`, 12, 0},
		{"a message alone", `{"messages":{"role":"user","content":{"text":""}}}`, 4, 0},
		{"input", `{"input":[{"role":"user","content":"a"},{"type":"function_call_output","output":""}]}`, 8, 0},
		{"texts", `{"input":["","","a"]}`, 6, 0},
		{"texts by number", `{"input":[[1,2],[3]]}`, 4, 0},
		{"one text by number", `{"input":[1,2,3]}`, 0, 0},
		{"prompts, which are answered", `{"prompt":["",""]}`, 0, 0},
		{"what is no message", `{"system":[{"type":"text","text":""}],"tools":[{},{}],"metadata":[{}]}`, 0, 0},
		{"texts to compare", `{"query":"a","documents":["",{"text":""},""]}`, 0, 6},
		{"the last of duplicates", `{"messages":[{},{}],"messages":[{}]}`, 4, 0},
	} {
		if f, err := scan([]byte(c.body)); err != nil || f.Prompt.Frames != c.prompt || f.Pairs.Frames != c.pair {
			t.Errorf("%s: %d and %d, %v; want %d and %d", c.name, f.Prompt.Frames, f.Pairs.Frames, err, c.prompt, c.pair)
		}
	}
}

// The rest of a body is what an engine may show to the model besides the prompt that is measured; numbers and limits are
// none of it.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		body        string
		rest, pairs int64
	}{
		{`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"a":"b"}],"max_tokens":"30","temperature":0.5,"x":null,"y":true}`, 0, 0},
		{`{"prompt":"abc","user":"somebody","stop":["x"],"metadata":{"a":"b"},"stream_options":{"include_usage":true}}`, 0, 0},
		{`{"messages":[],"chat_template_kwargs":{"a":"b"},"response_format":{"c":1}}`, 9 + 7, 0},
		{`{"prompt":"abc","suffix":"\u0430bc","prompt_token_ids":[1,2,3]}`, 10 + 7, 0},
		{`{"messages":[],"documents":[{"text":"one"}],"query":"q"}`, 0, 16 + 3},
	} {
		if f, err := scan([]byte(c.body)); err != nil || f.Rest != c.rest || f.PairsRest != c.pairs {
			t.Errorf("%s: %d and %d, %v; want %d and %d", c.body, f.Rest, f.PairsRest, err, c.rest, c.pairs)
		}
	}
}

// Rerank and score read a text as often as they read it together with another.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       int64
	}{
		{"rerank", `{"query":"1234","documents":["1","22","333"]}`, 3*4 + 6},
		{"with documents in parts", `{"query":"1234","documents":[{"text":"1"},{"text":"22"}]}`, 2*4 + 3},
		{"score", `{"text_1":"1234","text_2":"1"}`, 5},
		{"one with many", `{"text_1":"1234","text_2":["1","22"]}`, 2*4 + 3},
		{"many with one", `{"data_1":["1","22"],"data_2":"1234"}`, 3 + 2*4},
		{"each with its own", `{"queries":["1","22"],"documents":["333","4444"]}`, 10},
		{"a list of one", `{"queries":["1234"],"items":["1","22"]}`, 2*4 + 3},
		{"one field more", `{"query":"1234","text_1":"x","documents":["1","22"]}`, 2*4 + 3},
		{"one list more", `{"query":"1234","queries":["a","b"],"documents":["1","22"]}`, 2*4 + 3},
		{"many more on both sides", `{"text_1":["a","b"],"text_2":"1234","query":"c","texts":["d","e"]}`, 2 + 2*4},
		{"texts alone", `{"texts":["1","22"]}`, 3},
		{"the last of duplicates", `{"query":"1234","documents":["1"],"documents":["1","22"]}`, 2*4 + 3},
		{"none", `{"messages":[{"content":"a"}],"input":["b"]}`, 0},
	} {
		f, err := scan([]byte(c.body))
		if err != nil || f.Pairs.Text != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, f.Pairs.Text, err, c.want)
		}
	}
}

// JSON that no API defines, or with which a tool was called, counts as it is written, and the rest of a chat nothing.
func TestLoose(t *testing.T) {
	const arguments = `\u0061\u0072\u0067\u0075\u006d\u0065nts`
	for _, c := range []struct {
		name, body string
		text, rest int64
	}{
		{"a chat", `{"messages":[{"role":"user","content":"Hello","name":null},{"role":"assistant","content":[{"type":"text","text":"a"}]}]}`, 9 + 9 + 5, 0},
		{"a call with a string", `{"messages":[{"tool_calls":[{"id":"a","type":"b","function":{"name":"f","arguments":"{}"}}],"content":null}]}`, 5, 0},
		{"a call with an object", `{"messages":[{"tool_calls":[{"function":{"arguments":{"a":[777,777],"b":true}}}]}]}`, 24, 0},
		{"with blanks", `{"messages":[{"tool_calls":[{"function":{"arguments":{ "a": 1 } }}]}]}`, 10, 0},
		{"with text", `{"messages":[{"content":[{"type":"tool_use","input":{"q":"words"}}]}]}`, 8 + 5 + 8, 0},
		{"with a list", `{"input":[{"arguments":[1,null]}]}`, 8, 0},
		{"with a number", `{"messages":[{"function_call":{"arguments":1234}}]}`, 4, 0},
		{"keys", `{"messages":[{"content":[{"input":{"a":0,"` + strings.Repeat("k", 33) + `":0}}]}]}`, 33 + 12, 0},
		{"escapes", `{"messages":[{"content":[{"input":{"q":"\u0000\n\u0430\ud83d\ude00"}}]}]}`, 8 + 6 + 2 + 2 + 4, 0},
		{"a field of nobody", `{"messages":[{"role":"user","seed": 5}]}`, 4, 9},
		{"with a known one in it", `{"messages":[{"x":{"text":"ab"}}]}`, 2, 15},
		{"a literal of a known field", `{"messages":[{"content":true}]}`, 0, 4},
		{"a string that is a list", `{"messages":[{"text":[1,2]}]}`, 0, 5},
		{"numbers in parts", `{"messages":[{"content":[12,false]},34]}`, 0, 2 + 5 + 2},
		{"numbers of a prompt", `{"prompt":[[12],[34]]}`, 0, 0},
		{"behind an empty object", `{"prompt":[{},12]}`, 0, 0},
		{"but not deeper", `{"input":[{"content":[12]}]}`, 0, 2},
		{"behind it", `{"messages":[{"x":{},"content":"a"},{"y":[],"name":"b"}]}`, 2, 6 + 6},
		{"a key that is escaped", `{"messages":[{"\u0063ontent":[1],"` + strings.Repeat(`\u0063`, 6) + `":1}]}`, 36, 1 + 4},
		{"a long one", `{"messages":[{"` + arguments + `":{"a":1}}]}`, 39 + 7, 0},
		{"a long one, and another", `{"messages":[{"` + arguments + `":"a","x":1}]}`, 39 + 1, 5},
		{"the last of duplicates", `{"messages":[{"x":1}],"messages":[]}`, 0, 0},
	} {
		f, err := scan([]byte(c.body))
		if err != nil || f.Prompt.Text != c.text || f.Prompt.Rest != c.rest {
			t.Errorf("%s: %+v, %v; want %d and %d", c.name, f.Prompt, err, c.text, c.rest)
		}
	}
	for body, rest := range map[string]int64{`{"query":{"x":12},"documents":["a",{"x":1}]}`: 2*6 + 5, `{"documents":[{"x":1}],"texts":[{"x":1}]}`: 10} {
		if f, err := scan([]byte(body)); err != nil || f.Pairs.Rest != rest {
			t.Errorf("%s: %+v, %v; want %d", body, f.Pairs, err, rest)
		}
	}
}

// promptOf measures the prompt in what encoding/json has read.
func promptOf(body map[string]json.RawMessage) Prompt {
	size := Prompt{Text: int64(len(body["tools"])), Prompts: 1}
	for _, key := range []string{"messages", "prompt", "input", "system", "instructions"} {
		size.read(place{numbers: key == "prompt" || key == "input"}, body[key])
	}
	for _, key := range []string{"previous_response_id", "conversation"} {
		if named := string(body[key]); len(named) > 2 && named != "null" {
			size.Media++
		}
	}
	for key, kinds := range map[string]string{"prompt": "\"[", "messages": "["} {
		var list []json.RawMessage
		_ = json.Unmarshal(body[key], &list)
		n := int64(0)
		for _, item := range list {
			if strings.IndexByte(kinds, item[0]) >= 0 {
				n++
			}
		}
		size.Prompts = max(size.Prompts, n)
	}
	for _, key := range []string{"messages", "prompt", "input"} {
		size.Frames += framesOf(body[key], key, 0)
	}
	return size
}

// framesOf counts 4 for each object, alone or in up to two lists, and 2 for each other item of the list input but numbers.
func framesOf(value json.RawMessage, key string, lists int) (n int64) {
	var list []json.RawMessage
	switch {
	case len(value) == 0 || lists > 2:
	case value[0] == '{':
		return 4
	case json.Unmarshal(value, &list) == nil && value[0] == '[':
		for _, item := range list {
			if key == "input" && lists == 0 && (item[0] == '"' || item[0] == '[') {
				n += 2
			}
			n += framesOf(item, key, lists+1)
		}
	}
	return n
}

// place is where a value is: under a key or in a list, inside JSON that counts as it is, inside that of a tool, among numbers
// that are tokens, in an object with base64.
type place struct {
	key                                 string
	listed, loose, tool, numbers, media bool
	in                                  bool // at any depth
}

// loose counts bytes of JSON that counts as it is.
func (p *Prompt) loose(tool bool, bytes int) {
	if tool {
		p.Text += int64(bytes)
	} else {
		p.Rest += int64(bytes)
	}
}

// read counts a value.
func (p *Prompt) read(at place, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	switch value[0] {
	case '"':
		p.readString(at, value[1:len(value)-1])
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list)
		for _, item := range list {
			p.read(place{listed: true, loose: at.loose, tool: at.tool, numbers: at.numbers, in: at.in}, item)
		}
	case '{':
		p.readMembers(at, value)
	default:
		switch number := value[0] == '-' || value[0] <= '9'; {
		case !at.listed || at.loose:
		case number && at.numbers:
			p.Numbers++
		default:
			p.Rest += int64(len(value))
		}
	}
}

func (p *Prompt) readString(at place, inside []byte) {
	n, shown := decodedLength(inside)
	media := false
	if base64 := isBase64(inside); !at.loose {
		media = base64 && (at.key == "file_data" || at.key == "data" && at.media)
	}
	switch at.key {
	case "url", "image_url", "audio_url", "video_url", "file_url", "file_data":
		head := string(inside[:min(len(inside), 256)])
		media = media || !at.loose && strings.HasPrefix(head, "data:") && strings.Contains(head, ";base64,")
		fallthrough
	case "file_id":
		if len(inside) > 0 && !at.tool && !media {
			p.Media++
		}
	}
	if media {
		p.Media++
		return
	}
	p.Text += n
	if at.loose {
		p.loose(at.tool, int(shown-n)-len(inside))
	}
}

func (p *Prompt) readMembers(at place, value json.RawMessage) {
	type member struct {
		name  string
		raw   string
		value json.RawMessage
		whole int
	}
	var all []member
	members := json.NewDecoder(strings.NewReader(string(value)))
	_, _ = members.Token()
	for members.More() {
		m := member{}
		before := members.InputOffset()
		name, _ := members.Token()
		raw := strings.Trim(string(value[before:members.InputOffset()]), " \t\r\n,")
		start := int(members.InputOffset()) - len(raw)
		_ = members.Decode(&m.value)
		m.name, m.raw, m.whole = name.(string), raw[1:len(raw)-1], int(members.InputOffset())-start
		all = append(all, m)
	}
	media, source := !at.loose && !at.in && at.key == "input_audio", !at.loose && !at.in && at.key == "source"
	for _, m := range all {
		if source && m.name == "type" && m.value[0] == '"' {
			media = string(m.value) == `"base64"`
		}
	}
	for _, m := range all {
		in := place{key: m.name, loose: at.loose, tool: at.tool, media: media, in: at.in || source || media}
		c := m.value[0]
		object, plain := c == '{' || c == '[', c == '"' || c == 'n'
		if f := formOf([]byte(m.name)); !at.loose && f == unknown {
			p.loose(false, m.whole)
			in.loose = true
		} else if !at.loose && !plain && (f != parts || !object) {
			in.loose, in.tool = true, f == called
			p.loose(in.tool, len(m.value))
		}
		if len(m.raw) > 32 {
			p.Text += int64(len(m.raw))
			if at.loose || formOf([]byte(m.name)) == unknown {
				p.loose(at.tool, -len(m.raw))
			}
		}
		p.read(in, m.value)
	}
}
