package scrape

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// The newest series of a vLLM says what adapters it has, however many older ones there are, and no line of it spoils a page.
func TestAdaptersOfPages(t *testing.T) {
	const counts = "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
	old := ""
	for i := range 2 * maxSeries {
		old += fmt.Sprintf("vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"old-%d\",waiting_lora_adapters=\"\"} 1.7e9\n", i)
	}
	for name, test := range map[string]struct{ page, want string }{
		"none":    {"", "nil"},
		"idle":    {`vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.7e9`, "4 []"},
		"several": {`vllm:lora_requests_info{max_lora="2",running_lora_adapters="b, a",waiting_lora_adapters="c,a"} 1.7e9`, "2 [a b c]"},
		"newest":  {old + `vllm:lora_requests_info{max_lora="4",running_lora_adapters="new",waiting_lora_adapters=""} 1.8e9`, "4 [new]"},
		"not first": {
			`vllm:lora_requests_info{max_lora="4",running_lora_adapters="new",waiting_lora_adapters=""} 1.8e9` + "\n" + old,
			"4 [new]",
		},
		"no places":    {`vllm:lora_requests_info{running_lora_adapters="a"} 1`, "0 [a]"},
		"absurd":       {`vllm:lora_requests_info{max_lora="1e30",running_lora_adapters="` + strings.Repeat("n", 300) + `,b"} 1`, "256 [b]"},
		"no number":    {`vllm:lora_requests_info{max_lora="x",running_lora_adapters="a"} NaN`, "nil"},
		"no labels":    {`vllm:lora_requests_info 1`, "nil"},
		"broken":       {`vllm:lora_requests_info{max_lora="4`, "nil"},
		"too many":     {`vllm:lora_requests_info{running_lora_adapters="` + manyNames(1000) + `"} 1`, "0 256 names"},
		"with escapes": {`vllm:lora_requests_info{max_lora="1",running_lora_adapters="a\"b"} 1`, `1 [a"b]`},
	} {
		r, err := newPage(Names{}).read(strings.NewReader(counts+test.page+"\n"), 1<<20)
		got := "nil"
		if a := r.Adapters; a != nil {
			got = fmt.Sprint(a.Places, " ", a.Loaded)
			if len(a.Loaded) > 3 {
				got = fmt.Sprintf("%d %d names", a.Places, len(a.Loaded))
			}
		}
		if got != test.want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
		}
	}
}

// A configured metric says which adapters there are in place of vLLM's, and its labels choose among its series.
func TestConfiguredAdapterMetric(t *testing.T) {
	const page = `vllm:num_requests_running 1
vllm:num_requests_waiting 0
vllm:lora_requests_info{max_lora="1",running_lora_adapters="of-vllm"} 3
own:adapters{pool="a",max_lora="2",running_lora_adapters="a"} 1
own:adapters{pool="b",max_lora="3",running_lora_adapters="b"} 2
`
	for metric, want := range map[string]string{
		"": "1 [of-vllm]", "own:adapters": "3 [b]", `own:adapters{pool="a"}`: "2 [a]", "own:adapters{pool=c}": "nil", "other": "nil",
	} {
		names := Names{Adapters: metric}
		p := newPage(names)
		for range 2 { // pages are reused
			r, err := p.read(strings.NewReader(page), 1<<20)
			got := "nil"
			if a := r.Adapters; a != nil {
				got = fmt.Sprint(a.Places, " ", a.Loaded)
			}
			if got != want || err != nil {
				t.Errorf("%q: %s, %v, want %s", metric, got, err, want)
			}
		}
	}
}

// An engine's adapters are known from its first page with them, until a page has none.
func TestAdaptersComeAndGo(t *testing.T) {
	of := func(names ...string) *scheduling.AdapterState {
		return &scheduling.AdapterState{Places: 2, Loaded: names}
	}
	var engine target
	for i, stated := range []*scheduling.AdapterState{nil, of("a"), of("a", "b"), of("a", "b"), nil, of("a")} {
		if got := engine.signals(&Reading{Adapters: stated}).Adapters; !reflect.DeepEqual(got, stated) {
			t.Errorf("page %d: %v, want %v", i, got, stated)
		}
	}
}

// manyNames returns so many names.
func manyNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("adapter-", i)
	}
	return strings.Join(names, ",")
}
