package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/golden"
)

// relative lists the keys whose range depends on other keys.
var relative = []string{
	"requestQueueController.lowerBoundTokensPerBackend", "requestQueueController.upperBoundTokensPerBackend", "flows.discipline", "tenantPolicies[].quota.tokens", "roles[].quota.tokens",
	"policyClass.uncachedBuckets[].minTokens", "policyClass.byModel[].uncachedBuckets[].minTokens", "classes[].busyRatio",
}

// The comment of every number and duration has its range, which is its package's: the last value at each end is
// accepted, and the next one beyond is refused. The comment of every word lists the words, and another one is refused.
// testdata/ranges.yaml has the messages.
func TestRanges(t *testing.T) {
	p := newDocsPages(t)
	var refused []badKey
	for _, k := range keys() {
		bad, right := k.rangeIn(p.meaning[k.path])
		if k.isNumber() && len(bad) == 0 && !slices.Contains(anyValue, k.path) && k.path != "tiers[].minPriority" {
			t.Errorf("%s: the comment states no range", k.path)
		}
		for _, word := range enumerations[k.path].words() {
			bad, right = []string{"none-of-them"}, append(right, word)
			if !strings.Contains(p.meaning[k.path], word) {
				t.Errorf("%s: the comment does not list %s", k.path, word)
			}
		}
		for _, value := range bad {
			file := k.file(value)
			problems := problemsAt(file, k.pattern())
			if len(problems) != 1 || !strings.Contains(problems[0].Message, "must be ") {
				t.Errorf("%s: %v", file, problems)
				continue
			}
			refused = append(refused, badKey{Key: k.pattern(), Bad: file, Says: problems[0].Error()})
		}
		for _, value := range right {
			file := k.file(value)
			for _, problem := range problemsAt(file, k.pattern()) {
				if !slices.Contains(relative, k.path) {
					t.Errorf("%s: %v", file, problem)
				}
			}
		}
	}
	var text bytes.Buffer
	text.WriteString("# Bad values at the ends of the ranges, and other words. Written by TestRanges from the comments of the keys.\n")
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := enc.Encode(refused); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "ranges.yaml"), text.String())
}

// isNumber reports whether the values of a key are numbers or durations.
func (k key) isNumber() bool {
	t := k.Type
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind() == reflect.Int64
}

var ranges = []struct {
	text      *regexp.Regexp
	inclusive []bool // of two named bounds, the lower one first
}{
	{regexp.MustCompile(`(?i)\bfrom (\S+(?: watermark)?)(?: \(none\))? to (\S+?)[.,;]?(?: |$)`), []bool{true, true}},
	{regexp.MustCompile(`(?i)\babove (\S+?) and below (\S+?)[.;]`), []bool{false, false}},
	{regexp.MustCompile(`(?i)\babove (\S+?) and at most (\S+?)[.,;]`), []bool{false, true}},
	{regexp.MustCompile(`(?i)\babove (\S+?)[.;]`), []bool{false}},
	{regexp.MustCompile(`(?i)\bat least (\S+?)(?:[.;]| and)`), []bool{true}},
}

// rangeIn returns the values just beyond the range in the comment of a number, and its last allowed values.
func (k key) rangeIn(comment string) (bad, right []string) {
	if !k.isNumber() {
		return nil, nil
	}
	kind := k.Type
	if kind.Kind() != reflect.Int64 {
		kind = kind.Elem()
	}
	for _, r := range ranges {
		for _, bounds := range r.text.FindAllStringSubmatch(comment, -1) {
			for i, inclusive := range r.inclusive {
				bound := reflect.New(kind).Elem()
				dec := &decoder{lines: map[string]int{}}
				if dec.decode("", defaultOf(bounds[1+i]), bound); len(dec.problems) > 0 {
					continue // the bound is another key
				}
				inward := int64(1 - 2*i)
				first := bound.Int()
				if !inclusive {
					first += inward
				}
				for n, list := range map[int64]*[]string{first: &right, first - inward: &bad} {
					value := reflect.New(kind).Elem()
					value.SetInt(n)
					*list = append(*list, fmt.Sprint(value))
				}
			}
		}
	}
	return bad, right
}

// elementNames names the elements of lists, so that the problem of a key in them is the only one.
var elementNames = strings.NewReplacer("tiers: [ { ", "tiers: [ { name: default, ",
	"classes: [ { ", "classes: [ { name: c, ", "levels: [ { ", "levels: [ { key: [model], ", "uncachedBuckets: [ { ", "uncachedBuckets: [ { bucket: b, ", "models: [ { ", "models: [ { name: m, ", "targets: [ { ", "targets: [ { name: t, ",
	"status: { any", "status: { shed")

// file returns a file with a value of the key, in the first element of a list or map.
func (k key) file(value string) string {
	return elementNames.Replace(withValue(k.pattern(), value))
}

// pattern returns the path of the values of the key: of its elements, if it is a map.
func (k key) pattern() string {
	if k.Type.Kind() == reflect.Map {
		return k.path + "[]"
	}
	return k.path
}

var place = regexp.MustCompile(`\[(\d|default)\]|\.any|\.shed`)

// problemsAt returns the problems of a file in the values of a key.
func problemsAt(file, key string) []Problem {
	_, err := Load(source(file))
	problems, _ := err.(Problems) //nolint:errorlint // Load returns no other
	return slices.DeleteFunc(problems, func(p Problem) bool {
		return place.ReplaceAllString(p.Path, "[]") != key
	})
}
