package app

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/recording"
)

// inSessions are options with three endpoints, and affinity by a header.
func inSessions(more string) Options {
	o := testOptions()
	o.Endpoints = []string{"192.0.2.1:8000", "192.0.2.2:8000", "192.0.2.3:8000"}
	o.ConfigText = "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\nscheduling: { affinity: session, affinitySession: \"header:x-session\" }\n" + more
	return o
}

// A session keeps its endpoint while that is no fuller than others. Its requests are counted in tokens, and a recording
// shows the reason.
func TestSessionsGoWhereTheyWere(t *testing.T) {
	o := inSessions("")
	setRecording(&o, 1)
	r := start(t, o)
	went := map[string]string{}
	for turn := range 4 {
		for i := range 5 {
			name := fmt.Sprint("s", i)
			stream := r.request(t.Context(), [2]string{"x-session", name}, [2]string{"x-request-id", fmt.Sprint(name, " turn ", turn)})
			at := granted(t, stream)
			if turn > 0 && at != went[name] {
				t.Errorf("turn %d of %s went to %s, and the last to %s", turn, name, at, went[name])
			}
			went[name] = at
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			expect.True(t, "the request is over", func() bool {
				_, text := r.get("/metrics")
				return regexp.MustCompile(`(?m)^weir_stock_level\{.*\} 1$`).FindString(text) == ""
			})
		}
	}
	_, text := r.get("/metrics")
	for _, line := range []string{
		`weir_affinity_tokens_total{kind="prompt"} 20000`, `weir_affinity_tokens_total{kind="best"} 15000`,
		`weir_affinity_tokens_total{kind="chosen"} 15000`, `weir_affinity_nodes 5`, `weir_affinity_blocks 5`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	_, file := r.debug("/debug/recording")
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	said, err := format.Explain(strings.NewReader(file), recording.Request{ID: "s1 turn 3"})
	if err != nil || !strings.Contains(said[0].Story, "1000 tokens cached") {
		t.Errorf("%v\n%v", err, said)
	}
	if _, err := format.Replay(strings.NewReader(file)); err != nil {
		t.Error(err)
	}
}

// An engine whose metrics report a small cache has a small part of the index, and a restarted engine has nothing.
func TestEnginesSayWhatTheyCache(t *testing.T) {
	address, page := engineSaying(t)
	o := inSessions("")
	o.Endpoints = []string{address}
	o.Scrape.Interval = 100 * time.Millisecond
	r := start(t, o)
	tells := func(produced, blocks int) {
		text := *says(produced, 0) + fmt.Sprintf("vllm:generation_tokens_total %d\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"%d\"} 1\n", produced, blocks)
		page.Store(&text)
	}
	nodes := func(says string, want func(n int) bool) {
		t.Helper()
		expect.True(t, says, func() bool {
			_, text := r.get("/metrics")
			m := regexp.MustCompile(`(?m)^weir_affinity_nodes (\d+)$`).FindStringSubmatch(text)
			n, err := strconv.Atoi(m[1])
			return err == nil && want(n)
		})
	}
	sends := func(name string) {
		for i := range 150 {
			stream := r.request(t.Context(), [2]string{"x-session", fmt.Sprint(name, i)})
			granted(t, stream)
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
	}
	sends("before")
	nodes("a cache of unknown size has room for a block of each session", func(n int) bool { return n == 150 })
	tells(500, 1024)
	nodes("16,384 tokens have room for 128 blocks", func(n int) bool { return n == 128 })
	sends("meanwhile")
	nodes("and for no more", func(n int) bool { return n == 128 })
	tells(400, 1024)
	nodes("after a restart there are none", func(n int) bool { return n == 0 })
	tells(600, 1<<36)
	expect.True(t, "the page is read", func() bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, `weir_endpoint_running{endpoint="`+address+`"} 600`)
	})
	sends("again")
	nodes("a cache that is said to be endless has room", func(n int) bool { return n == 150 })
}

// Clients cannot predict the hashes of prompts. Without Kubernetes, where no other replica needs equal hashes, the seed
// is random unless configured, and survives a change of the configuration.
func TestSeedOfPrompts(t *testing.T) {
	o := inSessions("")
	d := config.Default()
	_, streams := o.converted(&d)
	_, again := o.converted(&d)
	if len(streams.Affinity.Seed) < 20 || again.Affinity.Seed != streams.Affinity.Seed {
		t.Errorf("seeds %q and %q", streams.Affinity.Seed, again.Affinity.Seed)
	}
	d.Scheduling.AffinitySeed = "ours"
	if _, streams = o.converted(&d); streams.Affinity.Seed != "ours" {
		t.Errorf("seed %q", streams.Affinity.Seed)
	}
	d.Scheduling.AffinitySeed, o.PoolName = "", "pool"
	if _, streams = o.converted(&d); streams.Affinity.Seed != "" {
		t.Errorf("of replicas that have to agree one has the seed %q", streams.Affinity.Seed)
	}
}
