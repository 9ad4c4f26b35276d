package body

import (
	"encoding/json"
	"strings"
	"testing"
)

// The length of a prompt, in the shapes of the APIs.
func TestPrompt(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgo+/x9", 100) + "=="
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
		{"an image of Anthropic's", `{"system":"Be kind.","messages":[{"content":[{"source":{"type":"base64","data":"` + image + `"}}]}]}`, size{8 + 6, 0, 1, 1}},
		{"a text of Anthropic's", `{"messages":[{"content":[{"source":{"type":"text","data":"It was a dark and stormy night; the rain fell in torrents, except"}}]}]}`, size{4 + 65, 0, 0, 1}},
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
		{"text as a key", `{"messages":[{"content":[{"input":{"` + strings.Repeat("many words ", 10) + `":0,"data":1}}]}]}`, size{110, 0, 0, 1}},
		{"numbers elsewhere are none", `{"messages":[{"content":"a","seed":5}],"logit_bias":[1,2]}`, size{1, 0, 0, 1}},
		{"escapes", `{"prompt":"\n\"\u00e9\u20ac\u0041\ud83d\ude00"}`, size{1 + 1 + 2 + 3 + 1 + 4, 0, 0, 1}},
		{"the last of duplicates", `{"prompt":["abc","d"],"prompt":"x"}`, size{1, 0, 0, 1}},
		{"no list of prompts", `{"prompt":{"a":["b","c"]}}`, size{2, 0, 0, 1}},
	} {
		f, err := Scan([]byte(c.body))
		if got := (size{f.Prompt.Text, f.Prompt.Numbers, f.Prompt.Media, f.Prompt.Prompts}); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
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
		if f, err := Scan([]byte(c.body)); err != nil || f.Rest != c.rest || f.PairsRest != c.pairs {
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
		f, err := Scan([]byte(c.body))
		if err != nil || f.Pairs.Text != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, f.Pairs.Text, err, c.want)
		}
	}
}

// promptOf measures the prompt in what encoding/json has read.
func promptOf(body map[string]json.RawMessage) Prompt {
	size := Prompt{Text: int64(len(body["tools"])), Prompts: 1}
	for _, key := range []string{"messages", "prompt", "input", "system", "instructions"} {
		numbers := size.Numbers
		if size.read("", body[key], false); key != "prompt" && key != "input" {
			size.Numbers = numbers
		}
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
	return size
}

// read counts a value under a key; listed is set for the elements of a list.
func (p *Prompt) read(key string, value json.RawMessage, listed bool) {
	if len(value) == 0 {
		return
	}
	switch c := value[0]; {
	case c == '"':
		inside, media := value[1:len(value)-1], isMedia([]byte(key), value[1:len(value)-1])
		if !media {
			p.Text += decodedLength(inside)
		}
		switch key {
		case "url", "image_url", "audio_url", "video_url", "file_url", "file_data", "file_id":
			media = len(inside) > 0
		}
		if media {
			p.Media++
		}
	case c == '[':
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list)
		for _, item := range list {
			p.read("", item, true)
		}
	case c == '{':
		members := json.NewDecoder(strings.NewReader(string(value)))
		_, _ = members.Token()
		for members.More() {
			before := members.InputOffset()
			name, _ := members.Token()
			raw := strings.Trim(string(value[before:members.InputOffset()]), " \t\r\n,")
			var item json.RawMessage
			_ = members.Decode(&item)
			key := raw[1 : len(raw)-1]
			if len(key) > 32 {
				p.Text += int64(len(key))
			}
			p.read(name.(string), item, false)
		}
	case listed && (c == '-' || c >= '0' && c <= '9'):
		p.Numbers++
	}
}
