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
)

const docsIntro = `# Configuration

<!-- Generated from the comments of internal/config by: go test ./internal/config -run Docs -rewrite -->

Weir reads one YAML file (` + "`--config-file`" + `, or ` + "`--config-text`" + ` for its text). It is made in layers: the defaults
of a profile, then the file, then the flags; a later layer changes only the fields that it names. A file that names no
profile has ` + "`recommended`" + `, which is the first column of the tables; one that means the values of the original
queueing proposal says ` + "`profile: wfq`" + `. A list replaces the list of the layer below; only ` + "`tiers`" + ` is merged by name, unless ` + "`replaceTiers: true`" + `. An unknown field, a wrong type or a value out of its range is
an error with its path, and all of them are reported at once. ` + "`weir config validate FILE`" + ` checks a file,
` + "`weir config show --profile NAME`" + ` prints a profile in full.

The snake_case spelling of the sections ` + "`fair_request_queue` and `request_queue_controller`" + ` and of their keys is
accepted too. Durations have a unit (` + "`30s`, `1m30s`" + `); decimals have at most six digits after the point and are exact.

**Set the watermark.** The default of 64 requests per backend is a guess of what an engine batches. Poppers fill only to
the lower bound, so to keep *n* batch slots of an engine busy (vLLM: ` + "`--max-num-seqs`" + `), set all three; a layer that
names the watermark and not a bound derives that bound from it:

` + "```yaml" + `
requestQueueController:
  watermarkPerBackend: 64
  lowerBoundPerBackend: 64
  upperBoundPerBackend: 64
` + "```" + `

Fields marked † are not acted upon yet, or not with the values named beside the mark: such a value is an error. A
profile marked † has such values, and is refused.

**Changes at run time.** A change of the file is validated and then applied to the running queue; an invalid one is
refused with every problem named, and the old configuration stays. ` + "`tierMode`, `capacityMode`, `flows.key` and\n`flows.discipline`" + ` cannot change at run time and are refused by name.

The last two tables say why the values of ` + "`wfq`" + `, from which every profile begins, and those in which
` + "`recommended`" + ` differs, are what they are.
`

// The reference is generated from the structs: their comments, their tags and the profiles.
func TestDocs(t *testing.T) {
	comments := fieldComments(t)
	documents := map[string]reflect.Value{}
	for _, name := range Profiles() {
		d, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		documents[name] = reflect.ValueOf(d)
	}
	var b strings.Builder
	b.WriteString(docsIntro)
	root := reflect.TypeFor[Document]()
	var sections []int
	b.WriteString("\n## Document\n\n" + docsHead)
	for i := range root.NumField() {
		if isSection(root.Field(i).Type) {
			sections = append(sections, i)
		} else {
			docsRow(t, &b, comments, documents, root, []int{i}, "")
		}
	}
	for _, i := range sections {
		field := root.Field(i)
		name := fieldNames(root)[i]
		section, index, prefix := field.Type, []int{i}, name
		if section.Kind() != reflect.Struct {
			section, prefix = section.Elem(), name+"[]"
			index = nil // its fields have no default of their own
		}
		fmt.Fprintf(&b, "\n## %s%s\n\n%s\n\n", prefix, docsMark(name), comments["Document."+field.Name])
		if index == nil {
			b.WriteString(docsList(documents, i))
		}
		b.WriteString(docsHead)
		docsSection(t, &b, comments, documents, section, index, "")
	}
	b.WriteString(docsReasons(t))
	golden(t, filepath.Join("..", "..", "docs", "config.md"), []byte(b.String()))
}

// otherProfiles returns the names of the profiles but the default one.
func otherProfiles() []string {
	return slices.DeleteFunc(Profiles(), func(name string) bool { return name == DefaultProfile })
}

const docsHead = "| key | default | other profiles | meaning |\n|---|---|---|---|\n"

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() != reflect.Struct && isList(t)
}

// isList reports whether t is a list or map of structs.
func isList(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && t.Elem().Kind() == reflect.Struct
}

func docsSection(t *testing.T, b *strings.Builder, comments map[string]string, documents map[string]reflect.Value,
	section reflect.Type, at []int, prefix string,
) {
	for i := range section.NumField() {
		var index []int
		if at != nil {
			index = append(slices.Clone(at), i)
		}
		if field := section.Field(i).Type; isSection(field) && !isList(field) {
			docsSection(t, b, comments, documents, field, index, prefix+fieldNames(section)[i]+".")
			continue
		}
		docsRowOf(t, b, comments, documents, section, i, index, prefix)
		if field := section.Field(i).Type; isList(field) {
			docsSection(t, b, comments, documents, field.Elem(), nil, prefix+fieldNames(section)[i]+"[].")
		}
	}
}

func docsRow(t *testing.T, b *strings.Builder, comments map[string]string, documents map[string]reflect.Value,
	section reflect.Type, index []int, prefix string,
) {
	docsRowOf(t, b, comments, documents, section, index[len(index)-1], index, prefix)
}

func docsRowOf(t *testing.T, b *strings.Builder, comments map[string]string, documents map[string]reflect.Value,
	section reflect.Type, i int, index []int, prefix string,
) {
	t.Helper()
	key := fieldNames(section)[i]
	comment := comments[section.Name()+"."+section.Field(i).Name]
	if comment == "" {
		t.Errorf("%s.%s has no comment", section.Name(), section.Field(i).Name)
	}
	var value string
	var others []string
	if index != nil {
		value = docsValue(documents[DefaultProfile].FieldByIndex(index))
		for _, name := range otherProfiles() {
			if other := docsValue(documents[name].FieldByIndex(index)); other != value {
				others = append(others, docsProfile(name)+": "+other)
			}
		}
	} else {
		element := reflect.New(section)
		if d, ok := reflect.TypeAssert[defaulter](element); ok {
			d.setDefaults()
		}
		value = docsValue(element.Elem().Field(i))
	}
	fmt.Fprintf(b, "| `%s`%s | %s | %s | %s |\n", prefix+key, docsMark(docsPath(section, key)), value, strings.Join(others, "<br>"), comment)
}

// docsMark marks a field that is not implemented yet, with its words if only some of them are missing.
func docsMark(path string) string {
	if path == "profile" {
		refusals := slices.DeleteFunc(Profiles(), func(name string) bool { return !refused(name) })
		return docsWords(refusals)
	}
	i := slices.IndexFunc(notYet, func(m missing) bool { return m.path == path })
	switch {
	case i < 0:
		return ""
	case len(notYet[i].words) == 0:
		return " †"
	default:
		return docsWords(notYet[i].words)
	}
}

// docsWords marks the words of a field that are not implemented.
func docsWords(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " († `" + strings.Join(words, "`, `") + "`)"
}

// docsProfile returns the name of a profile, marked if it is refused.
func docsProfile(name string) string {
	if refused(name) {
		return name + " †"
	}
	return name
}

// docsList returns the elements that a list has by default.
func docsList(documents map[string]reflect.Value, i int) string {
	list := "Default: " + docsValue(documents[DefaultProfile].Field(i))
	own := list
	for _, name := range otherProfiles() {
		if other := docsValue(documents[name].Field(i)); "Default: "+other != own {
			list += "; " + docsProfile(name) + ": " + other
		}
	}
	list += "."
	if list != own+"." {
		list += " `weir config show --profile NAME` has their fields."
	}
	return list + "\n\n"
}

// docsPath returns the path of a key as notYet spells it.
func docsPath(section reflect.Type, key string) string {
	root := reflect.TypeFor[Document]()
	for i, name := range fieldNames(root) {
		switch field := root.Field(i).Type; {
		case section == root && name == key:
			return key
		case field == section:
			return name + "." + key
		case isList(field) && field.Elem() == section:
			return name + "[]." + key
		}
	}
	return ""
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
		if v.Type().Elem().Kind() == reflect.Struct {
			var names []string
			for i := range v.Len() {
				names = append(names, v.Index(i).FieldByName("Name").String())
			}
			return "`" + strings.Join(names, "`, `") + "`"
		}
		var values []string
		for i := range v.Len() {
			values = append(values, fmt.Sprint(v.Index(i)))
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
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
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
