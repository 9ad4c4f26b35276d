package body

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// A body asks for usage after the least possible change, or stays as it is.
func TestAskUsage(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		{" {\n\"stream\":true }\r\n", " {\"stream_options\":{\"include_usage\":true},\n\"stream\":true }\r\n"},
		{`{"stream":true,"x":{"stream_options":{"include_usage":true}}}`, `{"stream_options":{"include_usage":true},"stream":true,"x":{"stream_options":{"include_usage":true}}}`},
		{`{"a":1e3,"stream_options": null ,"stream":true}`, `{"a":1e3,"stream_options": {"include_usage":true} ,"stream":true}`},
		{`{"stream_options":{},"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		{`{"stream_options":{ "include_obfuscation" : false },"stream":true}`, `{"stream_options":{"include_usage":true, "include_obfuscation" : false },"stream":true}`},
		{`{"stream_options":{"x":[{"include_usage":true}],"include_usage": false},"stream":true}`, `{"stream_options":{"x":[{"include_usage":true}],"include_usage": true},"stream":true}`},
		{`{"stream_options":{"include_usage":null},"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		{`{"stream_options":{"include_usage":true,"include_usage":false},"stream":true}`, `{"stream_options":{"include_usage":true,"include_usage":true},"stream":true}`},
		{`{"stream_options":{"include_usage":true},"stream_options":null,"stream":true}`, `{"stream_options":{"include_usage":true},"stream_options":{"include_usage":true},"stream":true}`},
		{`{"stream\u005foptions":{"include\u005Fusage":false},"stream":true}`, `{"stream\u005foptions":{"include\u005Fusage":true},"stream":true}`},
		{`{"stream_options":{"continuous_usage_stats":false},"stream":true}`, `{"stream_options":{"include_usage":true,"continuous_usage_stats":false},"stream":true}`},
		{`{"Stream_options":{"include_usage":true},"stream":true}`, `{"stream_options":{"include_usage":true},"Stream_options":{"include_usage":true},"stream":true}`},
		// Clients that ask get their own options.
		{`{"stream_options":{"include_usage":true},"stream":true}`, ``},
		{`{"stream_options":null,"stream_options":{"include_usage":true},"stream":true}`, ``},
		{`{"stream_options":{"include_usage":false,"include_usage":true},"stream":true}`, ``},
		// Options that are not understood, or that the usage would change, stay as they are.
		{`{"stream_options":{"include_usage":"true"},"stream":true}`, ``},
		{`{"stream_options":{"include_usage":1},"stream":true}`, ``},
		{`{"stream_options":[],"stream":true}`, ``},
		{`{"stream_options":"yes","stream":true}`, ``},
		{`{"stream_options":{"continuous_usage_stats":true},"stream":true}`, ``},
		{`{"stream_options":{"include_usage":false,"continuous_usage_stats":true},"stream":true}`, ``},
	} {
		f, err := scan([]byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		want := c.want
		if want == "" {
			want = c.body
		}
		if got := string(Apply([]byte(c.body), f.AskUsage)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.body, got, want)
		}
		if asks := f.IncludeUsage; asks && c.want != "" {
			t.Errorf("%s: it asks already", c.body)
		}
	}
}

// The edits of a body are made together, in whichever order they come.
func TestApplySeveral(t *testing.T) {
	for _, text := range []string{
		`{"model":"m","stream":true,"stream_options":null}`, `{"stream_options":null,"stream":true,"model":"m"}`,
	} {
		f, err := scan([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		one, other := Apply([]byte(text), f.AskUsage, f.Rename("x")), Apply([]byte(text), f.Rename("x"), f.AskUsage)
		g, err := scan(one)
		if err != nil || g.Model != "x" || !g.IncludeUsage || !bytes.Equal(one, other) {
			t.Errorf("%s became %s and %s: %v", text, one, other, err)
		}
	}
}

// FuzzAskUsage: what any body means stays the same but for stream_options.include_usage, as encoding/json reads it.
func FuzzAskUsage(f *testing.F) {
	for _, s := range []string{
		`{"stream":true,"model":"m"}`, `{"stream":true,"stream_options":{"x":1,"include_usage":false}}`,
		`{"stream_options":null,"stream":true,"stream_options":{"include_usage":null}}`, `{"stream_options":{},"s":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fields, err := scan(text)
		if err != nil || !fields.Stream || fields.AskUsage.Text == "" {
			return
		}
		after := Apply(text, fields.AskUsage)
		scanned, err := scan(after)
		if err != nil || !scanned.IncludeUsage || scanned.AskUsage.Text != "" {
			t.Fatalf("%q became %q: %+v, %v", text, after, scanned, err)
		}
		meaning := func(b []byte) (all map[string]any, err error) {
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber()
			err = d.Decode(&all)
			return all, err
		}
		was, err := meaning(text)
		if err != nil {
			return // encoding/json nests less deeply
		}
		is, err := meaning(after)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, after, err)
		}
		options, _ := was["stream_options"].(map[string]any)
		if options == nil {
			options = map[string]any{}
			was["stream_options"] = options
		}
		options["include_usage"] = true
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%q became %q", text, after)
		}
	})
}
