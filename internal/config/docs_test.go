package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/golden"
)

const generatedBy = "\n<!-- Generated from the comments and tags of internal/config by: go test ./internal/config -run Docs -rewrite -->\n"

const docsIntro = `# Configuration
` + generatedBy + `
This page has every key of Weir's configuration file, for operators: first the keys that most of them set, then the
others by section. The keys that nobody needs are on [a page of their own](settings-nobody-needs.md).

Weir reads one YAML file (` + "`--config-file`, or `--config-text`" + ` for its text). It is made in layers: the defaults of a
profile, then the file, then the flags; a later layer changes only the fields that it names. A file that names no profile
has ` + "`recommended`" + `, whose values are the defaults below; a file for the values of the original queueing proposal says
` + "`profile: wfq`" + `. A list replaces the list of the layer below; only ` + "`tiers`" + ` is merged by name, unless
` + "`replaceTiers: true`" + `. An unknown field, a wrong type or a value out of its range is an error with its path, and all of
them are reported at once. ` + "`weir config validate FILE` checks a file, `weir config show --profile NAME`" + ` prints a
profile in full.

Durations have a unit (` + "`30s`, `1m30s`" + `); decimals have at most six digits after the point and are exact. The keys of
` + "`fairRequestQueue` and `requestQueueController`, and these two names, are also accepted in snake_case" + `
(` + "`fair_request_queue`" + `), not in both spellings at once.

**Slots.** ` + "`recommended`" + ` finds the batch slots of each engine by its metrics; where it has none they are 64, a guess. To
keep exactly *n* batch slots of an engine busy (vLLM: ` + "`--max-num-seqs`" + `), set them:

` + "```yaml" + `
requestQueueController: { slotsPerBackend: 64 }
` + "```" + `

They take the place of ` + "`watermarkPerBackend`, `lowerBoundPerBackend` and `upperBoundPerBackend`" + `. With these instead, set all
three, since poppers fill only to the lower bound; a layer that names the watermark and not a bound derives that bound
from it.

**Changes at run time.** A change of the file is validated and then applied to the running queue; an invalid one is
refused with every problem named, and the old configuration stays.
%s cannot change at run time and are refused by name.

The last column has the reason of the default, and after "wfq:" that of the value of ` + "`wfq`" + `, from which every profile
begins. "The proposal" is the queueing proposal that these values come from.
`

const docsRareIntro = `# Settings that nobody needs
` + generatedBy + `
This page is for operators who meet one of these keys in a file: the queueing proposal and other endpoint pickers have
them, but on a running system no value is better than the default, so leave them out. [config.md](config.md) has the
other keys, and explains the columns.
`

const docsHead = "\n| key | default | other profiles | meaning | why |\n|---|---|---|---|---|\n"

// The pages are generated from the keys' comments and tags, and the profiles.
func TestDocs(t *testing.T) {
	p := newDocsPages(t)
	var config, rare strings.Builder
	var refused []string
	for k, when := range tagged("reload") {
		if when == reloadRefused {
			refused = append(refused, "`"+k.path+"`")
		}
	}
	last := len(refused) - 1
	fmt.Fprintf(&config, docsIntro, strings.Join(refused[:last], ", ")+" and\n"+refused[last])
	config.WriteString("\n## Settings of most installations\n" + docsHead + p.rows("", PageFirst))
	p.section(&config, "Document", "", "")
	for _, k := range keys() {
		switch {
		case strings.Contains(k.path, "."):
		case k.Type.Kind() == reflect.Struct:
			p.section(&config, k.path, p.meaning[k.path], k.path)
		case isList(k.Type):
			p.section(&config, k.path+"[]", p.list(k), k.path+"[]")
		}
	}
	rare.WriteString(docsRareIntro + docsHead + p.rows("", PageRare))
	golden.Check(t, filepath.Join("..", "..", "docs", "config.md"), config.String())
	golden.Check(t, filepath.Join("..", "..", "docs", "settings-nobody-needs.md"), rare.String())
	for _, k := range keys() {
		want := 1
		if k.Type.Kind() == reflect.Struct || isList(k.Type) && k.Tag.Get("page") == "" && !strings.Contains(k.path, ".") {
			want = 0 // it has a section
		}
		if n := strings.Count(config.String()+rare.String(), "\n| `"+k.path+"`"); n != want {
			t.Errorf("%s has %d rows", k.path, n)
		}
	}
}

// Every key has a comment. Every default has a reason, and every value of the profile recommended too.
func TestDefaultsHaveReasons(t *testing.T) {
	p := newDocsPages(t)
	for _, k := range keys() {
		_, byDefault := k.Tag.Lookup("default")
		if p.meaning[k.path] == "" {
			t.Errorf("%s has no comment", k.path)
		}
		if reason := p.reason[k.path]; byDefault != (len(strings.Fields(reason)) > 2) {
			t.Errorf("%s: a default needs a reason, and a key that must be given has none: %q", k.path, reason)
		}
	}
	d, err := Profile(ProfileRecommended)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range Changed(Default(), d) {
		if len(p.recommended[path]) == 0 && path != "profile" {
			t.Errorf("profiles/recommended.yaml has no comment above %s", path)
		}
	}
}

// docsPages is the text of the pages on the keys, by path.
type docsPages struct {
	documents       map[string]reflect.Value // by profile
	meaning, reason map[string]string
	recommended     map[string]string // the reasons of that profile; tiers by their place
}

func newDocsPages(t *testing.T) *docsPages {
	t.Helper()
	p := &docsPages{map[string]reflect.Value{}, map[string]string{}, map[string]string{}, map[string]string{}}
	for _, name := range Profiles() {
		d, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		p.documents[name] = reflect.ValueOf(d)
	}
	comments := fieldComments(t)
	var add func(section reflect.Type, path string)
	add = func(section reflect.Type, path string) {
		for i, name := range fieldNames(section) {
			field, path := section.Field(i), join(path, name)
			p.meaning[path], p.reason[path], _ = strings.Cut(comments[section.Name()+"."+field.Name], " Default: ")
			if field.Type.Kind() == reflect.Struct {
				add(field.Type, path)
			} else if isList(field.Type) {
				add(field.Type.Elem(), path+"[]")
			}
		}
	}
	add(reflect.TypeFor[Document](), "")
	p.addReasons(profileTexts()[ProfileRecommended], "")
	return p
}

// addReasons adds the comments above the keys of a profile.
func (p *docsPages) addReasons(node *yaml.Node, path string) {
	tiers := Default().TierNames()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := join(path, key.Value)
		p.recommended[at] = strings.Join(strings.Fields(strings.ReplaceAll(key.HeadComment, "# ", " ")), " ")
		if value.Kind == yaml.MappingNode {
			p.addReasons(value, at)
		}
		for _, item := range value.Content {
			if at == "tiers" {
				p.addReasons(item, index(at, slices.Index(tiers, nameOf(item))))
			}
		}
	}
}

// section writes a section with the keys below a path, except for those with a page of their own.
func (p *docsPages) section(b *strings.Builder, title, comment, path string) {
	rows := p.rows(path, "")
	if rows == "" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", title)
	if comment != "" {
		b.WriteString("\n" + strings.TrimSpace(comment) + "\n")
	}
	b.WriteString(docsHead + rows)
}

// rows returns the rows of a page's keys below a path: for "" those of the document itself or, on another page, all.
func (p *docsPages) rows(path, page string) string {
	var b strings.Builder
	for _, k := range keys() {
		under := strings.HasPrefix(k.path, path+".")
		switch {
		case k.Tag.Get("page") != page, k.Type.Kind() == reflect.Struct:
		case page == "" && path == "" && (strings.Contains(k.path, ".") || isList(k.Type)):
		case page == "" && path != "" && !under:
		default:
			b.WriteString(p.row(k))
		}
	}
	return b.String()
}

// row returns the row of a key.
func (p *docsPages) row(k key) string {
	value, others := p.values(k)
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", k.path, value, strings.Join(others, "<br>"), p.meaning[k.path], p.why(k))
}

// values returns the default of a key, and the profiles with another one.
func (p *docsPages) values(k key) (value string, others []string) {
	text, byDefault := k.Tag.Lookup("default")
	switch {
	case !byDefault:
		return "required", nil
	case strings.Contains(k.path, "[]"):
		element := reflect.New(k.Type).Elem()
		(&decoder{lines: map[string]int{}}).decode("", defaultOf(text), element)
		return docsValue(element), nil
	}
	value = docsValue(fieldAt(p.documents[DefaultProfile], k.path))
	for _, name := range Profiles() {
		if other := docsValue(fieldAt(p.documents[name], k.path)); other != value {
			others = append(others, name+": "+other)
		}
	}
	return value, others
}

// why returns the reasons of a key's default.
func (p *docsPages) why(k key) string {
	var reasons []string
	each(p.documents[ProfileRecommended], k.path, nil, func(elements []any, v reflect.Value) {
		path := pathText(pathOf(k.path, elements))
		switch reason := p.recommended[path]; {
		case reason == "":
		case len(elements) > 0:
			reasons = append(reasons, fmt.Sprintf("%s of `%s`: %s", docsValue(v), path, reason))
		default:
			reasons = append(reasons, reason)
		}
	})
	if own := p.reason[k.path]; own != "" && len(reasons) > 0 {
		reasons = append(reasons, "wfq: "+own)
	} else if own != "" {
		reasons = append(reasons, own)
	}
	return strings.Join(reasons, "<br>")
}

// list returns the text on a list in the section of its elements.
func (p *docsPages) list(k key) string {
	if k.Tag.Get("page") != "" {
		return fmt.Sprintf("The keys of each element of `%s`. `weir config show --profile NAME` has those of a profile.", k.path)
	}
	value, others := p.values(k)
	return p.meaning[k.path] + "\n\n" + strings.Join(append([]string{"Default: " + value}, others...), "; ") + ". " + p.why(k)
}

func docsValue(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return docsValue(v.Elem())
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return "empty"
		}
		var values []string
		if v.Kind() == reflect.Map {
			for _, key := range v.MapKeys() {
				values = append(values, key.String())
			}
			slices.Sort(values)
			return "`" + strings.Join(values, "`, `") + "`"
		}
		for i := range v.Len() {
			element := v.Index(i)
			if element.Kind() == reflect.Struct {
				element = element.FieldByName("Name")
			}
			values = append(values, fmt.Sprint(element))
		}
		return "`" + strings.Join(values, "`, `") + "`"
	default:
		if text := fmt.Sprint(v.Interface()); text != "" {
			return "`" + text + "`"
		}
		return "empty"
	}
}

// fieldComments returns the comments of the struct fields of this package, by Type.Field.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, parsed := range goFiles(t) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						comment := strings.Join(strings.Fields(field.Doc.Text()), " ")
						comments[spec.Name.Name+"."+name.Name] = strings.ReplaceAll(comment, "|", "\\|")
					}
				}
			}
			return true
		})
	}
	return comments
}

// goFiles returns the syntax of this package without its tests.
func goFiles(t *testing.T) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
