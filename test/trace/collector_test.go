package trace

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/child"
)

// soon bounds short waits, on a machine that may be busy.
const soon = 30 * time.Second

// collector is a running OTLP receiver.
type collector struct {
	t          *testing.T
	grpc, http string // addresses

	mu    sync.Mutex
	spans []span
}

// span is a span in the collector.
type span struct {
	service               string
	trace, id, parent     string
	name, status, message string
	start, end            time.Time
	attributes            map[string]string
}

// startCollector starts a collector, which ends with the test.
func startCollector(t *testing.T) *collector {
	t.Helper()
	path, err := checkout.Tool(t.Context(), "otlpcollector")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	process, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = process.Kill()
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ GRPC, HTTP string }
	if err := json.Unmarshal(first, &at); err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	c := &collector{t: t, grpc: at.GRPC, http: at.HTTP}
	go c.read(lines)
	return c
}

// attribute is an attribute in OTLP's JSON.
type attribute struct {
	Key   string
	Value map[string]any
}

func textsOf(list []attribute) map[string]string {
	texts := map[string]string{}
	for _, a := range list {
		for _, value := range a.Value {
			text, _ := json.Marshal(value)
			if s, ok := value.(string); ok {
				text = []byte(s)
			}
			texts[a.Key] = string(text)
		}
	}
	return texts
}

// read keeps the spans that the collector prints.
func (c *collector) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var got struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []attribute }
				ScopeSpans []struct {
					Spans []struct {
						TraceID, SpanID, ParentSpanID, Name string
						StartTimeUnixNano, EndTimeUnixNano  int64 `json:",string"`
						Attributes                          []attribute
						Status                              struct {
							Code    json.Number
							Message string
						}
					}
				}
			}
		}
		if err := json.Unmarshal(line, &got); err != nil {
			c.t.Errorf("the collector prints %s: %v", line, err)
			return
		}
		c.mu.Lock()
		for _, r := range got.ResourceSpans {
			for _, scope := range r.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans = append(c.spans, span{
						service: textsOf(r.Resource.Attributes)["service.name"],
						trace:   s.TraceID, id: s.SpanID, parent: s.ParentSpanID, name: s.Name,
						status: s.Status.Code.String(), message: s.Status.Message,
						start: time.Unix(0, s.StartTimeUnixNano), end: time.Unix(0, s.EndTimeUnixNano), attributes: textsOf(s.Attributes),
					})
				}
			}
		}
		c.mu.Unlock()
	}
}

// await waits for n wanted spans, and returns them.
func (c *collector) await(n int, wanted func(*span) bool) []span {
	c.t.Helper()
	for until := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		var found []span
		for i := range c.spans {
			if wanted(&c.spans[i]) {
				found = append(found, c.spans[i])
			}
		}
		all := c.spans
		c.mu.Unlock()
		if len(found) >= n {
			return found
		}
		if time.Now().After(until) {
			c.t.Fatalf("%d of %d spans within %s, of %+v", len(found), n, soon, all)
		}
	}
}
