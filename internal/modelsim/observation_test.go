package modelsim

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecords(t *testing.T) {
	cfg := Fixed(1, time.Second)
	cfg.Records, cfg.RecordBodyBytes = 2, 10
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		start := time.Now()
		const body = `{"messages":[],"stream":true,"max_tokens":2}`
		for range 3 {
			b.post(chatPath, body)
		}
		records := b.Records()
		if len(records) != 2 {
			t.Fatalf("%d records, want the last 2", len(records))
		}
		r := records[0]
		if r.Number != 2 || records[1].Number != 3 {
			t.Errorf("records %d and %d, want 2 and 3", r.Number, records[1].Number)
		}
		if r.Tag != "id-"+chatPath || r.Path != chatPath || r.Method != http.MethodPost || r.Proto != "HTTP/1.1" {
			t.Errorf("recorded %+v", r)
		}
		if string(r.Body) != body[:10] || r.BodyBytes != len(body) {
			t.Errorf("body %q of %d bytes, want %q of %d", r.Body, r.BodyBytes, body[:10], len(body))
		}
		arrived, first, ended := r.Arrived.Sub(start), r.FirstToken.Sub(start), r.Ended.Sub(start)
		if arrived != time.Second || first != 1500*time.Millisecond || ended != 2*time.Second || r.Outcome != Completed {
			t.Errorf("arrived %v, first token %v, ended %v as %v", arrived, first, ended, r.Outcome)
		}
		if r.Prompt != 1 || r.Output != 2 {
			t.Errorf("worked for %d + %d tokens, want 1 + 2", r.Prompt, r.Output)
		}
	})
}

// The engine's work for a disconnected client is recorded, too.
func TestRecordOfOneWhoLeft(t *testing.T) {
	cfg := Fixed(1, time.Second)
	cfg.Records = 1
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		defer cancel()
		resp, err := b.send(ctx, chatPath, `{"messages":[],"stream":true,"max_tokens":4}`)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		<-ctx.Done()
		synctest.Wait()
		if r := b.Records()[0]; r.Outcome != Aborted || r.Prompt != 1 || r.Output != 2 {
			t.Errorf("%v after %d + %d tokens, want aborted after 1 + 2", r.Outcome, r.Prompt, r.Output)
		}
	})
}

// The gauges follow the load, under vLLM's names.
func TestMetrics(t *testing.T) {
	cfg := Fixed(2, time.Second)
	cfg.Model = `a"b`
	inBubble(t, cfg, func(t *testing.T, b *bubble) {
		for range 3 {
			go b.post(chatPath, `{"messages":[],"max_tokens":4}`)
		}
		synctest.Wait()
		const labels = `{engine="0",model_name="a\"b"`
		busy := b.get("/metrics")
		for _, line := range []string{
			"vllm:num_requests_running" + labels + "} 2",
			"vllm:num_requests_waiting" + labels + "} 1",
			"vllm:num_requests_waiting_by_reason" + labels + `,reason="capacity"} 1`,
			"vllm:kv_cache_usage_perc" + labels + "} 0.0001220703125", // 2 blocks of 16,384
			"vllm:cache_config_info" + labels + `,block_size="16",num_gpu_blocks="16384"`,
			"vllm:generation_tokens_total" + labels + "} 0",
			"vllm:num_preemptions_total" + labels + "} 0",
		} {
			if !strings.Contains(busy, "\n"+line) {
				t.Errorf("no line %s in\n%s", line, busy)
			}
		}
		time.Sleep(3 * time.Second) // the work takes two
		idle := b.get("/metrics")
		for _, line := range []string{
			"vllm:num_requests_running" + labels + "} 0",
			"vllm:num_requests_waiting" + labels + "} 0",
			"vllm:generation_tokens_total" + labels + "} 12",
		} {
			if !strings.Contains(idle, "\n"+line) {
				t.Errorf("no line %s in\n%s", line, idle)
			}
		}
	})
}

func TestOtherPaths(t *testing.T) {
	inBubble(t, TinyVLLM(), func(t *testing.T, b *bubble) {
		if got := b.get("/health"); got != "" {
			t.Errorf("/health says %q, want nothing", got)
		}
		models := b.get("/v1/models")
		if id, longest := path(t, models, "data", 0, "id"), path(t, models, "data", 0, "max_model_len"); id != "tiny" || longest != 2048.0 {
			t.Errorf("model %v of %v tokens, want tiny of 2048", id, longest)
		}
		if status, _ := b.post("/v1/unknown", `{}`); status != 404 {
			t.Errorf("an unknown path has status %d, want 404", status)
		}
		resp, err := b.client.Get("http://memory" + chatPath)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET has status %d, want 405", resp.StatusCode)
		}
		if s := b.Stats(); s.Started != 0 {
			t.Errorf("%d inference requests counted, want none", s.Started)
		}
	})
}

// get returns the body of a 200 answer.
func (b *bubble) get(path string) string {
	b.t.Helper()
	resp, err := b.client.Get("http://memory" + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Errorf("GET %s: status %d, error %v", path, resp.StatusCode, err)
	}
	return string(data)
}
