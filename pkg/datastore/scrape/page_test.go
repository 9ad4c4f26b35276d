package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

const vllmPage = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 8.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.2512345
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="2048",engine="0"} 1.0
vllm:num_preemptions_total{engine="0",model_name="tiny"} 7.0
vllm:num_preemptions_created{engine="0",model_name="tiny"} 1.7e+09
vllm:generation_tokens_total{engine="0",model_name="tiny"} 1.2345e+04
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="tiny"} 0.0
process_virtual_memory_bytes 1.3e+10
`

func read(t *testing.T, text string) (Reading, error) {
	t.Helper()
	return newPage(Names{}).read(strings.NewReader(text), 1<<20)
}

// Every engine's page says how many requests run and wait, and how large its KV cache is, where it says so.
func TestEnginesAreRecognised(t *testing.T) {
	for _, test := range []struct {
		name, page string
		want       Reading
	}{
		{"vLLM", vllmPage, Reading{
			Engine: "vLLM", Running: 8, Waiting: 5, Lacking: 3, CacheUsed: 251234, CacheTokens: 16 * 2048, Preemptions: 7, Produced: 12345,
		}},
		{
			"a vLLM that states its tokens", "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n" +
				`vllm:cache_config_info{block_size="16",num_gpu_blocks="None",kv_cache_size_tokens="4711"} 1` + "\n",
			Reading{Engine: "vLLM", Running: 1, CacheTokens: 4711},
		},
		{"a vLLM of two ranks", `vllm:num_requests_running{engine="0"} 3
vllm:num_requests_running{engine="1"} 4
vllm:num_requests_waiting{engine="0"} 1
vllm:num_requests_waiting{engine="1"} 2
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="0"} 1
vllm:cache_config_info{block_size="16",num_gpu_blocks="200",engine="1"} 1
`, Reading{Engine: "vLLM", Running: 7, Waiting: 3, Lacking: 3, CacheUsed: 750000, CacheTokens: 4800}},
		{"SGLang", `sglang:num_running_reqs{model_name="m"} 12
sglang:num_queue_reqs{model_name="m"} 2
sglang:token_usage{model_name="m"} 0.9
sglang:cache_config_info{page_size="1",num_pages="450000",model_name="m"} 1.0
sglang:num_retracted_reqs{model_name="m"} 7
sglang:num_retracted_requests_total{model_name="m"} 1
`, Reading{Engine: "SGLang", Running: 12, Waiting: 2, Lacking: 2, CacheUsed: 900000, CacheTokens: 450000, Preemptions: 1}},
		{"trtllm-serve", `trtllm_num_requests_running{engine_type="a"} 3
trtllm_num_requests_waiting{engine_type="a"} 4
trtllm_kv_cache_utilization{engine_type="a"} 0.5
trtllm_kv_cache_max_blocks{engine_type="a"} 1000
trtllm_kv_cache_tokens_per_block{engine_type="a"} 32
`, Reading{Engine: "trtllm-serve", Running: 3, Waiting: 4, Lacking: 4, CacheUsed: 500000, CacheTokens: 32000}},
		{"Triton", `nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 9
nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 5
nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 4
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.25
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 100
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="m"} 64
`, Reading{Engine: "Triton", Running: 5, Waiting: 4, Lacking: 4, CacheUsed: 250000, CacheTokens: 6400}},
		{
			"llama.cpp", "llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\nllamacpp:kv_cache_usage_ratio 0.125\n",
			Reading{Engine: "llama.cpp", Running: 2, Waiting: 1, Lacking: 1, CacheUsed: 125000},
		},
		{"timestamps, spaces, no newline at the end", "vllm:num_requests_running { model_name = \"a}b\\\"{\" }   2 1700000000000\r\n" +
			"vllm:num_requests_waiting\t1", Reading{Engine: "vLLM", Running: 2, Waiting: 1, Lacking: 1}},
		{"a series twice counts once", "vllm:num_requests_running{a=\"1\"} 2\nvllm:num_requests_running{a=\"1\"} 2\nvllm:num_requests_waiting 0\n" +
			"vllm:num_requests_waiting 9\n", Reading{Engine: "vLLM", Running: 2}},
		{
			"more than can be", "vllm:num_requests_running 1e300\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 17\n",
			Reading{Engine: "vLLM", Running: maxRequests, CacheUsed: 1e6},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := read(t, test.page)
			got.Utilised, got.StatesUtilised = 0, false // see TestUtilisation
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// A gauge that need not be there and is no number, as 0/0 of an engine that has just started, is not said; the rest of the page
// counts.
func TestAnOptionalGaugeThatIsNoNumber(t *testing.T) {
	const page = "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\n"
	want, err := read(t, page)
	if err != nil {
		t.Fatal(err)
	}
	for _, gauge := range []string{
		"vllm:kv_cache_usage_perc NaN", "vllm:kv_cache_usage_perc -0.5", "vllm:num_preemptions_total +Inf", "vllm:generation_tokens_total many",
	} {
		if got, err := read(t, page+gauge+"\n"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", gauge, got, err, want)
		}
	}
}

// A page that cannot be read says why.
func TestHostilePages(t *testing.T) {
	for _, test := range []struct {
		name, page string
		want       Reason
		says       string
	}{
		{"empty", "", NoKnownMetric, ""},
		{"another program", "go_goroutines 12\n", NoKnownMetric, ""},
		{"no queue", "vllm:num_requests_running 1\n", NoKnownMetric, "wait"},
		{"HTML", "\n  <!DOCTYPE html><html>", HTML, "HTML"},
		{"NaN", "vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\n", BadValue, `vllm:num_requests_running has the value "NaN"`},
		{"1e400", "vllm:num_requests_running 0\nvllm:num_requests_waiting 1e400\n", BadValue, `"1e400"`},
		{"infinite", "vllm:num_requests_running +Inf\nvllm:num_requests_waiting 0\n", BadValue, `"+Inf"`},
		{"negative", "vllm:num_requests_running -1\nvllm:num_requests_waiting 0\n", BadValue, `"-1"`},
		{"a word", "vllm:num_requests_running many\nvllm:num_requests_waiting 0\n", BadValue, `"many"`},
		{"no value", "vllm:num_requests_running\nvllm:num_requests_waiting 0\n", BadValue, "cannot be read"},
		{"open labels", "vllm:num_requests_running{a=\"\nvllm:num_requests_waiting 0\n", BadValue, "cannot be read"},
		{"too many series", "vllm:num_requests_waiting 0\n" + many(func(b *strings.Builder, i int) {
			b.WriteString(`vllm:num_requests_running{a="` + strings.Repeat("x", i) + "\"} 1\n")
		}), TooLarge, "512 series"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := read(t, test.page)
			if reasonOf(err) != test.want || err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %+v, %v (%s), want %s and %q", got, err, reasonOf(err), test.want, test.says)
			}
		})
	}
}

func many(line func(*strings.Builder, int)) string {
	var b strings.Builder
	for i := range maxSeries + 1 {
		line(&b, i)
	}
	return b.String()
}

// A page is the same in whatever pieces it comes, and lines that are too long are skipped.
func TestPagesComeInPieces(t *testing.T) {
	long := `unknown{a="` + strings.Repeat("x", 3*lineSize) + "\"} 1\n"
	text := long + vllmPage + long + "vllm:num_requests_running{engine=\"1\"} 1"
	want, err := read(t, text)
	if err != nil || want.Running != 9 {
		t.Fatal(want, err)
	}
	p := newPage(Names{})
	for name, r := range map[string]io.Reader{
		"bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
		"with EOF": iotest.DataErrReader(strings.NewReader(text)),
	} {
		if got, err := p.read(r, 1<<20); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// No more than the limit is read.
func TestPageIsBounded(t *testing.T) {
	endless := iotest.DataErrReader(endlessLine{})
	_, err := newPage(Names{}).read(endless, 1<<20)
	if reasonOf(err) != TooLarge {
		t.Error(err)
	}
	if _, err := newPage(Names{}).read(strings.NewReader(vllmPage), int64(len(vllmPage))); err != nil {
		t.Errorf("a page of just the limit: %v", err)
	}
	if _, err := newPage(Names{}).read(strings.NewReader(vllmPage), int64(len(vllmPage)-1)); reasonOf(err) != TooLarge {
		t.Errorf("a byte more: %v", err)
	}
	broken := io.MultiReader(strings.NewReader(vllmPage), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := newPage(Names{}).read(broken, 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a page that breaks off: %v", err)
	}
}

type endlessLine struct{}

func (endlessLine) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// Configured names go before known ones, alone or beside them.
func TestConfiguredNames(t *testing.T) {
	names := Names{
		Running: `mine_requests{state="running"}`, Waiting: `mine_requests{ state=waiting }`, CacheUsed: "mine_kv",
		CacheInfo: "mine_info",
	}
	page := `mine_requests{state="running"} 3
mine_requests{state="waiting"} 2
mine_kv 0.5
mine_info{block_size="8",num_gpu_blocks="10"} 1
`
	got, err := newPage(names).read(strings.NewReader(page), 1<<20)
	want := Reading{Engine: "configured", Running: 3, Waiting: 2, Lacking: 2, CacheUsed: 500000, CacheTokens: 80, Utilised: 500000, StatesUtilised: true}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = newPage(Names{Waiting: "mine_queue"}).read(strings.NewReader(vllmPage+"mine_queue 1\n"), 1<<20)
	if err != nil || got.Waiting != 1 || got.Running != 8 || got.Engine != "vLLM" {
		t.Errorf("one of them: %+v, %v", got, err)
	}
	if r, err := newPage(Names{Adapters: "a"}).read(strings.NewReader(vllmPage), 1<<20); err != nil || r.Running != 8 {
		t.Errorf("beside a metric of adapters: %+v, %v", r, err)
	}
	if _, own := known["mine_queue"]; own || len(known["vllm:num_requests_running"]) != 1 {
		t.Error("the known metrics have changed")
	}
}

// The utilisation is that of the processors, else of the KV cache; the most of several.
func TestUtilisation(t *testing.T) {
	const counts = "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
	for page, want := range map[string]string{
		counts:                                  "0 false",
		counts + "vllm:kv_cache_usage_perc 0\n": "0 true",
		counts + "vllm:kv_cache_usage_perc 0.25\n": "250000 true",
		counts + "vllm:kv_cache_usage_perc 0.25\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 90\n": "900000 true",
		counts + "nv_gpu_utilization{gpu_uuid=\"a\"} 0.5\nDCGM_FI_DEV_GPU_UTIL 10\n":                                       "500000 true",
		counts + "DCGM_FI_DEV_GPU_UTIL 1e9\n": "1000000 true",
		counts + "nv_gpu_utilization Nan\n":   "0 false",
	} {
		got, err := read(t, page)
		if s := fmt.Sprint(got.Utilised, " ", got.StatesUtilised); err != nil || s != want {
			t.Errorf("%q: %s, %v, want %s", page, s, err, want)
		}
	}
}

// FuzzPage checks that nothing panics, that no number is out of range, and that a page is the same in pieces.
func FuzzPage(f *testing.F) {
	f.Add([]byte(vllmPage))
	f.Add([]byte("sglang:num_running_reqs{a=\"\\"))
	f.Add([]byte("<html>"))
	p := newPage(Names{})
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := p.read(bytes.NewReader(text), 1<<16)
		again, err2 := p.read(iotest.OneByteReader(bytes.NewReader(text)), 1<<16)
		if got != again || (err == nil) != (err2 == nil) {
			t.Errorf("%+v, %v; in pieces %+v, %v", got, err, again, err2)
		}
		if got.Running < 0 || got.Running > maxRequests || got.Waiting < 0 || got.Lacking < 0 || got.Lacking > got.Waiting ||
			got.CacheUsed < 0 || got.CacheUsed > 1e6 || got.CacheTokens < 0 || got.CacheTokens > maxTokens || got.Preemptions < 0 {
			t.Errorf("%+v", got)
		}
	})
}
