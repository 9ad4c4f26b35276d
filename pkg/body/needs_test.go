package body

import (
	"fmt"
	"testing"
)

func TestNeeds(t *testing.T) {
	image, audio, video, structured := Needs{Image: true}, Needs{Audio: true}, Needs{Video: true}, Needs{Structured: true}
	chat := func(part string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},` + part + `]}]}`
	}
	for _, test := range []struct {
		body string
		want Needs
	}{
		{`{"messages":[{"role":"user","content":"image_url"}],"type":"image"}`, Needs{}},
		// Parts of OpenAI's chats, as vLLM, SGLang and llama.cpp take them too.
		{chat(`{"type":"image_url","image_url":{"url":"https://a.test/b.png"}}`), image},
		{chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`), image},
		{chat(`{"type":"image\u005furl","image_url":"data:image/png;base64,AAAA"}`), image},
		{chat(`{"image_url":"https://a.test/b.png"}`), image},
		{chat(`{"image_url":{"url":"https://a.test/b.png"}}`), image},
		{chat(`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`), audio},
		{chat(`{"type":"audio_url","audio_url":{"url":"https://a.test/b.wav"}}`), audio},
		{chat(`{"type":"video_url","video_url":{"url":"https://a.test/b.mp4"}}`), video},
		{chat(`{"type":"file","file":{"file_id":"f"}}`), Needs{}},
		{chat(`{"type":"image_url"},{"type":"input_audio"}`), Needs{Image: true, Audio: true}},
		// Anthropic's messages, and results of tools in them.
		{chat(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`), image},
		{chat(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://a.test"}}]}`), image},
		// OpenAI's responses.
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a.test/b.png"}]}]}`, image},
		{`{"input":"type image_url"}`, Needs{}},
		// The arguments of a tool are text, whatever they look like.
		{chat(`{"type":"tool_use","id":"t","name":"n","input":{"type":"image","image_url":{"url":"x"}}}`), Needs{}},
		{chat(`{"type":"text","text":"{\"type\":\"image_url\"}"}`), Needs{}},
		{`{"messages":[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"type\":\"image\"}"}}]}]}`, Needs{}},
		// Batches, documents, and the last of duplicate keys.
		{`{"messages":[[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]]}`, image},
		{`{"query":"q","documents":{"content":[{"type":"image_url","image_url":{"url":"u"}}]}}`, image},
		{`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"u"}}]}],"messages":[]}`, Needs{}},

		{`{"response_format":{"type":"json_object"}}`, structured},
		{`{"response_format":{"json_schema":{"name":"text","schema":{"type":"text"}},"type":"json_schema"}}`, structured},
		{`{"response_format":{"type":"structural_tag"}}`, structured},
		{`{"response_format":{"type":"text"}}`, Needs{}},
		{`{"response_format":null}`, Needs{}},
		{`{"response_format":"json"}`, Needs{}}, // of transcriptions
		{`{"response_format":{"type":"json_object"},"response_format":{"type":"text"}}`, Needs{}},
		{`{"text":{"format":{"type":"json_schema","schema":{}}}}`, structured},
		{`{"text":{"format":{"type":"text"},"verbosity":"low"}}`, Needs{}},
		{`{"text":"{\"format\"}"}`, Needs{}},
		{`{"tools":[{"type":"function"}]}`, structured},
		{`{"tools":[ ]}`, Needs{}},
		{`{"tools":null,"functions":[{"name":"f"}]}`, structured},
		{`{"tool_choice":"none","tools":[{"type":"function"}]}`, Needs{}},
		{`{"tool_choice":"none","tools":[{"type":"function"}],"guided_regex":"a+"}`, structured},
		{`{"tool_choice":"none","tools":[{"type":"function"}],"tool_choice":"auto"}`, structured},
		{`{"guided_json":{"type":"object"}}`, structured},
		{`{"guided_choice":["a","b"],"guided_choice":null}`, Needs{}},
		{`{"guided_choice":[],"guided_json":{ },"guided_grammar":""}`, Needs{}},
		{`{"guided_decoding_backend":"xgrammar"}`, Needs{}},
		{`{"structured_outputs":{"choice":["a"]}}`, structured},
		{`{"output_config":{"format":{"type":"json_schema"}}}`, structured},
		{`{"output_config":{"effort":"high"}}`, Needs{}},
		{`{"regex":"a"}`, structured},
		{`{"messages":[{"content":[{"type":"image_url"}]}],"grammar":"root ::= x"}`, Needs{Image: true, Structured: true}},
	} {
		got, err := scan([]byte(test.body))
		if err != nil || got.Needs != test.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", test.body, got.Needs, err, test.want)
		}
	}
}

// Each key has a bit of its own, so that one that is null takes back nothing of another's.
func TestEveryFormIsItsOwn(t *testing.T) {
	for _, key := range otherForms {
		for _, other := range otherForms {
			b := fmt.Sprintf(`{%q:{"a":1},%q:null}`, key, other)
			if f, err := scan([]byte(b)); err != nil || f.Needs.Structured != (key != other) {
				t.Errorf("%s: %+v, %v", b, f.Needs, err)
			}
		}
	}
}
