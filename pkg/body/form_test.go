package body

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
)

const formType = "multipart/form-data; boundary=b"

// field is one part of a form.
func field(disposition, value string, headers ...string) string {
	return "--b\r\nContent-Disposition: " + disposition + "\r\n" + strings.Join(headers, "") + "\r\n" + value + "\r\n"
}

const (
	named  = `form-data; name="model"`
	closed = "--b--\r\n"
)

var audio = field(`form-data; name="file"; filename="a.wav"`, "RI\x00\xff\r\n--\r\nFF", "Content-Type: audio/wav\r\n")

// A real Starlette 1.10 with python-multipart 0.0.34 and FastAPI 0.165 (request: Annotated[T, Form()]) reads this model in
// each form, or none. ScanForm reads the same.
func TestScanFormAsStarlette(t *testing.T) {
	for _, test := range []struct{ name, form, contentType, model string }{
		{"one", audio + field(named, "a") + closed, formType, "a"},
		{"the last of two", audio + field(named, "a") + field(named, "b") + closed, formType, "b"},
		{"an empty one after it", audio + field(named, "a") + field(named, "") + closed, formType, ""},
		{"a field after a file of that name", field(named+`; filename="x"`, "f") + field(named, "b") + closed, formType, "b"},
		{"an unquoted name", field("form-data; name=model", "a") + closed, formType, "a"},
		{"names of parameters in any case", field(`form-data; NAME="model"`, "a") + closed, formType, "a"},
		{"the name's own case counts", field(`form-data; name="Model"`, "a") + closed, formType, ""},
		{"not form-data", field(`attachment; name="model"`, "a") + closed, formType, "a"},
		{"a percent sign stays", field(`form-data; name="mod%65l"`, "a") + closed, formType, ""},
		{"blank lines first", "\r\n\r\n" + field(named, "a") + closed, formType, "a"},
		{"without the last line's end", field(named, "a") + "--b--", formType, "a"},
		{"a form within", field(`form-data; name="n"`, "--c\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nq\r\n--c--",
			"Content-Type: multipart/mixed; boundary=c\r\n") + field(named, "a") + closed, formType, "a"},
		{"content type in any case", field(named, "a") + closed, "MULTIPART/Form-Data; Boundary=b", "a"},
		{"a quoted boundary", field(named, "a") + closed, `multipart/form-data; boundary="b"`, "a"},
		{"a name in UTF-8", field(`form-data; name="file"; filename="é.wav"`, "x") + field(named, "é") + closed, formType, "é"},
		{"a file's name in RFC 2231", field(`form-data; name="file"; filename*=utf-8''%C3%A9.wav`, "x") + field(named, "a") + closed, formType, "a"},
		{"a megabyte", field(named, strings.Repeat("a", 1<<20)) + closed, formType, strings.Repeat("a", 1<<20)},
		{"990 parts", strings.Repeat(field(`form-data; name="p"`, ""), 990) + field(named, "a") + closed, formType, "a"},
	} {
		f, err := scanForm([]byte(test.form), test.contentType)
		if err != nil || f.Model != test.model {
			t.Errorf("%s: %.40q, %v, want %.40q", test.name, f.Model, err, test.model)
		}
		if f.Model != "" {
			want := test.form[:strings.LastIndex(test.form, "\r\n\r\n"+test.model)+4] + "other" +
				test.form[strings.LastIndex(test.form, test.model+"\r\n--b")+len(test.model):]
			if got := string(Apply([]byte(test.form), f.Rename("other"))); got != want {
				t.Errorf("%s rewritten: %.200q\nwant %.200q", test.name, got, want)
			}
		}
	}
}

// A model that is a file is not a string, whatever came before it: FastAPI answers 422.
func TestModelThatIsAFile(t *testing.T) {
	for _, file := range []string{`; filename="x"`, `; filename=""`, `; filename*=utf-8''x`} {
		f, err := scanForm([]byte(field(named, "a")+field(named+file, "b")+closed), formType)
		if err != nil || f.Model != "" || !f.ModelSeen || f.ModelEnd != 0 {
			t.Errorf("%s: %+v, %v", file, f, err)
		}
	}
}

// Forms that readers interpret differently, or that no client sends, are refused. Starlette refuses most of these, and
// reads another model or none in the rest.
func TestScanFormRefuses(t *testing.T) {
	one := field(named, "a") + closed
	long := strings.Repeat("x", 71)
	for name, test := range map[string]struct{ form, contentType string }{
		"empty":                            {"", formType},
		"JSON":                             {`{"model":"m"}`, formType},
		"only the end":                     {"--b--\r\n", formType},
		"never closed":                     {field(named, "a"), formType},
		"cut off in the boundary":          {field(named, "a") + "--", formType},
		"cut off in the headers":           {"--b\r\nContent-Disposition: form-da", formType},
		"a boundary that never comes":      {one, "multipart/form-data; boundary=c"},
		"text before it":                   {"hello\r\n" + one, formType},
		"text after it":                    {one + "junk", formType},
		"a part after the end":             {one + field(named, "z"), formType},
		"LF":                               {strings.ReplaceAll(one, "\r\n", "\n"), formType},
		"blanks after a boundary":          {strings.ReplaceAll(one, "--b\r\n", "--b  \r\n"), formType},
		"a longer boundary":                {field(named, "a\r\n--bc") + closed, formType},
		"no headers":                       {"--b\r\n\r\na\r\n" + one, formType},
		"no content":                       {"--b\r\nContent-Disposition: " + named + "\r\n\r\n" + closed, formType},
		"no disposition":                   {"--b\r\nX: y\r\n\r\na\r\n" + one, formType},
		"two dispositions":                 {field(`form-data; name="x"`, "a", "Content-Disposition: "+named+"\r\n") + closed, formType},
		"a folded header":                  {field("form-data;\r\n name=\"model\"", "a") + closed, formType},
		"a header folded by a tab":         {field("form-data;\r\n\tname=\"model\"", "a") + closed, formType},
		"a bare LF in the headers":         {field("form-data; name=\"x\"\nX: y", "a") + one, formType},
		"a bare CR in the headers":         {field("form-data; name=\"x\"", "a", "X: y\rz\r\n") + one, formType},
		"headers of 17 KiB":                {field(named, "a", "X: "+strings.Repeat("y", 17<<10)+"\r\n") + closed, formType},
		"a model that is not UTF-8":        {field(named, "mod\xe8le") + closed, formType}, // Starlette reads it as Latin-1
		"an escaped boundary":              {strings.ReplaceAll(one, "--b", "--bb"), `multipart/form-data; boundary="b\b"`},
		"a header with a space":            {"--b\r\nContent-Disposition : " + named + "\r\n\r\na\r\n" + closed, formType},
		"no name":                          {field(`form-data; filename="x"`, "a") + closed, formType},
		"two names":                        {field(`form-data; name="x"; name="model"`, "a") + closed, formType},
		"a name in RFC 2231":               {field(`form-data; name*=utf-8''model`, "a") + closed, formType},
		"a name in parts":                  {field(`form-data; name*0=mo; name*1=del`, "a") + closed, formType},
		"an escaped name":                  {field(`form-data; filename="x\\"; name="model"`, "a") + closed, formType},
		"an encoded model":                 {field(named, "YQ==", "Content-Transfer-Encoding: base64\r\n") + closed, formType},
		"no boundary":                      {one, "multipart/form-data"},
		"an empty boundary":                {strings.ReplaceAll(one, "--b", "--"), `multipart/form-data; boundary=""`},
		"a boundary of 71":                 {strings.ReplaceAll(one, "--b", "--"+long), "multipart/form-data; boundary=" + long},
		"two boundaries":                   {one, "multipart/form-data; boundary=c; boundary=b"},
		"a boundary in RFC 2231":           {one, "multipart/form-data; boundary*=utf-8''b"},
		"another charset":                  {one, "multipart/form-data; boundary=b; charset=utf-16"},
		"two content types":                {one, "multipart/form-data; boundary=b,application/json"},
		"2001 parts":                       {strings.Repeat(field(`form-data; name="p"`, ""), 2000) + one, formType},
		"headers without end":              {"--b\r\n" + strings.Repeat("X: y\r\n", 10_000) + "\r\n\r\n" + one, formType},
		"Starlette splits at another line": {field(`form-data; name="x"`, "v\r\n--b") + one, formType},
	} {
		f, err := scanForm([]byte(test.form), test.contentType)
		if problem := new(Form); !errors.As(err, &problem) {
			t.Errorf("%s: model %q, %v", name, f.Model, err)
		}
	}
}

// A form is recognised by its media type, whatever its case and its parameters.
func TestIsForm(t *testing.T) {
	for contentType, want := range map[string]bool{
		formType: true, "Multipart/Form-Data ; boundary=b": true, " multipart/form-data": true, "": false,
		"multipart/mixed; boundary=b": false, "application/json; x=multipart/form-data": false, "multipart/form-data-x": false,
	} {
		if got := IsForm(contentType); got != want {
			t.Errorf("%q: %v", contentType, got)
		}
	}
}

// FuzzForm compares with mime/multipart, which has to read the same models in every form that is accepted. A rewrite
// changes the last model and no other byte.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		field(named, "a") + closed, audio + field(named, "a") + field(named, "b") + closed, "--b\r\n", "--b--",
		field(named+`; filename="x"`, "f") + closed, "\r\n" + field(`form-data; name=model`, "\r\n--") + "--b--",
	} {
		f.Add([]byte(s), formType)
	}
	f.Fuzz(func(t *testing.T, b []byte, contentType string) {
		got, err := scanForm(b, contentType)
		if err != nil {
			return
		}
		_, params, err := mime.ParseMediaType(contentType)
		if err != nil {
			t.Fatal(err)
		}
		model, file := "", false
		for r := multipart.NewReader(bytes.NewReader(b), params["boundary"]); ; {
			p, err := r.NextRawPart()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: mime/multipart: %v", b, err)
			}
			content, err := io.ReadAll(p)
			if err != nil {
				t.Fatalf("%q: mime/multipart: %v", b, err)
			}
			if _, params, _ := mime.ParseMediaType(p.Header.Get("Content-Disposition")); params["name"] == "model" {
				_, file = params["filename"]
				model = string(content)
			}
		}
		if file {
			model = ""
		}
		if got.Model != model {
			t.Errorf("%q: model %q, mime/multipart reads %q", b, got.Model, model)
		}
		if got.ModelEnd > 0 {
			after := Apply(b, got.Rename("other"))
			again, err := scanForm(after, contentType)
			if err != nil || again.Model != "other" || !bytes.HasPrefix(after, b[:got.ModelStart]) || !bytes.HasSuffix(after, b[got.ModelEnd:]) {
				t.Errorf("%q rewritten: %q, %v", b, after, err)
			}
		}
	})
}

// Clients write dispositions in various ways. These are common.
func TestFormsOfClients(t *testing.T) {
	var w bytes.Buffer
	m := multipart.NewWriter(&w)
	file, err := m.CreateFormFile("file", `we"ird\name model.wav`)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, "x")
	if err := m.WriteField("model", "a"); err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	if f, err := scanForm(w.Bytes(), m.FormDataContentType()); err == nil || f.Model != "" {
		t.Errorf("a file's name with a backslash and the word: %+v, %v", f, err)
	}
	plain := bytes.ReplaceAll(w.Bytes(), []byte("name model.wav"), []byte("name.wav"))
	if f, err := scanForm(plain, m.FormDataContentType()); err != nil || f.Model != "a" {
		t.Errorf("%+v, %v", f, err)
	}
}

// A form with the largest number of parts allocates no buffer for each part.
func BenchmarkFormOfManyParts(b *testing.B) {
	form := []byte(strings.Repeat(field(`form-data; name="p"`, ""), MaxParts-1) + field(named, "a") + closed)
	b.SetBytes(int64(len(form)))
	b.ReportAllocs()
	for b.Loop() {
		if f, err := scanForm(form, formType); err != nil || f.Model != "a" {
			b.Fatal(f, err)
		}
	}
}

// BenchmarkForm scans an upload of 8 MB.
func BenchmarkForm(b *testing.B) {
	form := []byte(field(`form-data; name="file"; filename="a.wav"`, strings.Repeat("\r\n\x00x", 2<<20)) + field(named, "a") + closed)
	b.SetBytes(int64(len(form)))
	b.ReportAllocs()
	for b.Loop() {
		if f, err := scanForm(form, formType); err != nil || f.Model != "a" {
			b.Fatal(f, err)
		}
	}
}

// Each file of a form is a part of the prompt that cannot be measured.
func TestFilesAreMedia(t *testing.T) {
	for body, want := range map[string]int64{field(named, "m") + closed: 0, field(named, "m") + audio + audio + closed: 2} {
		if f, err := scanForm([]byte(body), formType); err != nil || f.Prompt.Media != want {
			t.Errorf("%q: %d, %v; want %d", body, f.Prompt.Media, err, want)
		}
	}
}
