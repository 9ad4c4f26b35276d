package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func scan(b []byte) (f Fields, err error) {
	err = f.Scan(b)
	return f, err
}

func scanForm(b []byte, contentType string) (f Fields, err error) {
	err = f.ScanForm(b, contentType)
	return f, err
}

func TestScanFields(t *testing.T) {
	tests := []struct {
		body string
		want func(*Fields)
	}{
		{`{}`, func(*Fields) {}},
		{` { "model" : "m" } `, func(f *Fields) { f.Model, f.ModelStart, f.ModelEnd, f.ModelSeen = "m", 13, 16, true }},
		{`{"model":"a","x":{"model":"b"},"y":[{"model":"c"}]}`, func(f *Fields) { f.Model, f.ModelStart, f.ModelEnd, f.ModelSeen = "a", 9, 12, true }},
		{`{"model":"a","model":"b"}`, func(f *Fields) { f.Model, f.ModelStart, f.ModelEnd, f.ModelSeen = "b", 21, 24, true }},
		{`{"model":"a","model":null}`, func(f *Fields) { f.ModelSeen = true }},
		{`{"mod\u0065l":"a\u00e9\ud83d\ude00\n"}`, func(f *Fields) { f.Model, f.ModelStart, f.ModelEnd, f.ModelSeen = "aé😀\n", 14, 37, true }},
		{`{"Model":"a"}`, func(*Fields) {}},
		{`{"stream":true,"stream_options":{"include_usage":true}}`, func(f *Fields) { f.Stream, f.IncludeUsage = true, true }},
		{`{"stream":true,"stream":false,"stream_options":{"include_usage":true},"stream_options":{}}`, func(*Fields) {}},
		{`{"stream":"true","stream_options":{"x":{"include_usage":true}}}`, func(*Fields) {}},
		{`{"max_tokens":10,"max_completion_tokens":2e1,"max_output_tokens":-1,"n":1e300}`, func(f *Fields) {
			f.MaxTokens, f.MaxCompletionTokens, f.MaxOutputTokens, f.N = 10, 20, 0, maxInteger
		}},
		{`{"max_tokens":10,"max_tokens":"many","n":null}`, func(f *Fields) { f.MaxTokens = 0 }},
		{`{"max_tokens":10,"max_tokens":null,"n":" +1_6.0\n","best_of":"\u0034"}`, func(f *Fields) { f.N, f.BestOf = 16, 4 }},
		{`{"max_tokens":"","max_completion_tokens":true,"max_output_tokens":[7],"n":"Infinity","best_of":"-nan"}`, func(f *Fields) {
			f.MaxTokens, f.MaxCompletionTokens, f.MaxOutputTokens, f.N, f.BestOf = 0, 0, 0, 0, 0
		}},
		{`{"messages":[1, 2],"prompt":"abc","tools":[]}`, func(f *Fields) { f.Prompt = Prompt{Text: 3 + 2, Rest: 2, Prompts: 1} }},
		{`{"prompt":"abcdef","prompt":"a"}`, func(f *Fields) { f.Prompt.Text = 1 }},
	}
	for _, test := range tests {
		var want Fields
		want.begin()
		test.want(&want)
		got, err := scan([]byte(test.body))
		got.AskUsage, got.Rest, got.spans, got.media = Edit{}, 0, want.spans, nil // see TestAskUsage, TestRest, TestOrderOfTemplates, TestMediaAreNoText
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", test.body, got, err, want)
		}
	}
}

func TestScanRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for _, body := range []string{
		``, `   `, `null`, `[]`, `"model"`, `{`, `{"model"`, `{"model":`, `{"model":"m"`, `{"model":"m"}}`, `{"model":"m"} x`,
		`{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":01}`, `{"a":+1}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":tru}`, `{"a":nul}`,
		`{"a":[1,]}`, `{"a":[1 2]}`, `{"a":{"b"}}`, `{a:1}`, `{'a':1}`, "{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":"\u12g4"}`,
		`model=m&prompt=x`, `{"a":` + deep + `}`,
	} {
		_, err := scan([]byte(body))
		if syntax := new(Syntax); !errors.As(err, &syntax) {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}

func TestRewriteChangesOneValue(t *testing.T) {
	const text = "{ \"model\" : \"first\",\n\t\"x\": {\"model\":\"inner\"}, \"model\" :\"last\" , \"y\": 1.0 }\r\n"
	f, err := scan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, `"last"`, `"v\"1\\é"`, 1)
	if got := string(Apply([]byte(text), f.Rename(`v"1\é`))); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// FuzzScan compares with encoding/json, which has to accept the same bodies and read the same value of duplicate keys.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":5,"n":2}`,
		`{"model":"a","model":"b\n\u00e9","x":[1,-2.5e+3,true,null,{"y":{}}]}`,
		`{"messages":[{"content":[{"image_url":{"\u0075rl":"x"}},{"file_id":"f"},{"url":""}]}],"conversation":{},"previous_response_id":"r"}`,
		`{"messages":[{"x":{"url":"x"},"tool_calls":[{"function":{"arguments":{"a":[1,true,"\n"]}}},{"source":{"type":"base64","data":"` + strings.Repeat("QUJD", 20) + `"}}]}]}`,
		`{"stream_options":{"include_usage":true},"priority":3}`, `{"a":"\ud800"}`, "{\"model\":\"\xff\"}", `[]`, `{}x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := scan(b)
		var want map[string]json.RawMessage
		if oracle := json.Unmarshal(b, &want); (err == nil) != (oracle == nil && want != nil) {
			if !strings.Contains(fmt.Sprint(err), "too deep") {
				t.Fatalf("%q: %v, encoding/json says %v", b, err, oracle)
			}
		}
		if err != nil {
			return
		}
		var model *string
		_ = json.Unmarshal(want["model"], &model)
		if model == nil {
			model = new(string)
		}
		if got.Model != *model {
			t.Errorf("%q: model %q, want %q", b, got.Model, *model)
		}
		if got.ModelEnd > 0 {
			after := Apply(b, got.Rename("other"))
			again, err := scan(after)
			if err != nil || again.Model != "other" {
				t.Errorf("%q rewritten: model %q, %v", after, again.Model, err)
			}
			if !bytes.HasPrefix(after, b[:got.ModelStart]) || !bytes.HasSuffix(after, b[got.ModelEnd:]) {
				t.Errorf("%q: bytes around the model changed: %q", b, after)
			}
		}
		if stream := string(want["stream"]) == "true"; got.Stream != stream {
			t.Errorf("%q: stream %v", b, got.Stream)
		}
		var n *float64
		if json.Unmarshal(want["n"], &n) == nil && n != nil {
			if clamped := int64(min(max(*n, 0), maxInteger)); got.N != clamped {
				t.Errorf("%q: n %d, want %d", b, got.N, clamped)
			}
		}
		var options map[string]json.RawMessage
		_ = json.Unmarshal(want["stream_options"], &options)
		if usage := string(options["include_usage"]) == "true"; got.IncludeUsage != usage {
			t.Errorf("%q: include_usage %v", b, got.IncludeUsage)
		}
		if size := promptOf(want); got.Prompt != size {
			t.Errorf("%q: %+v, want %+v", b, got.Prompt, size)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		text := []byte(`{"model":"llama-3-8b","messages":[{"role":"user","content":"` +
			strings.Repeat("The quick brown fox says: hello.\\n", size/34) + `"}],"stream":true,"max_tokens":100}`)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if f, err := scan(text); err != nil || f.MaxTokens != 100 {
					b.Fatal(f, err)
				}
			}
		})
	}
}
