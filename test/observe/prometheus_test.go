package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
)

// prometheus is a running Prometheus.
type prometheus struct {
	process *child.Process
	dir     string
	url     string

	mu sync.Mutex // of the files that it reads
}

// scraping scrapes the targets in targets/ once a second, and evaluates the rules in rules/ as often.
const scraping = `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["rules/*.json"]
scrape_configs:
- job_name: rigs
  file_sd_configs: [{ files: ["targets/*.json"] }]
`

// shared is the Prometheus of all rigs, which are jobs of it.
var shared lazily

// lazily is a Prometheus, started by the first test.
type lazily struct {
	once  sync.Once
	it    *prometheus
	err   error
	files string
}

func (l *lazily) get(t *testing.T) *prometheus {
	t.Helper()
	l.once.Do(func() {
		if l.files, l.err = os.MkdirTemp("", "weir-observe-"); l.err == nil {
			l.it, l.err = startPrometheus(t.Context(), l.files, scraping)
		}
	})
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.it
}

// stop ends it, if it was started.
func (l *lazily) stop() {
	if l.it != nil {
		_ = l.it.process.Kill()
	}
	_ = os.RemoveAll(l.files)
}

// listening is the line of Prometheus' log with its address.
var listening = regexp.MustCompile(`msg="Listening on".* address=(127\.0\.0\.1:\d+)`)

// startPrometheus starts a Prometheus with its files in dir, and returns when it is ready. Blocks may be in dir/data.
func startPrometheus(ctx context.Context, dir, config string) (*prometheus, error) {
	binary, err := checkout.Tool(ctx, "prometheus")
	if err != nil {
		return nil, err
	}
	file, logFile := filepath.Join(dir, "prometheus.yml"), child.LogFile(filepath.Join(dir, "prometheus.log"))
	for _, sub := range []string{"targets", "rules", "data"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--web.enable-lifecycle", "--log.level=info")
	cmd.Dir = dir
	p := &prometheus{dir: dir}
	if p.process, err = logFile.Start(cmd); err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if address := listening.FindStringSubmatch(logFile.String()); address != nil {
			p.url = "http://" + address[1]
			if err = p.post("/-/ready", http.MethodGet); err == nil {
				return p, nil
			}
		}
		if p.process.Ended() || time.Now().After(end) {
			_ = p.process.Kill()
			return nil, fmt.Errorf("observe: Prometheus is not ready: %w\n%s", errors.Join(err, ctx.Err()), child.Tail(logFile.String(), 20))
		}
	}
}

// post sends a request without content, and expects status 200.
func (p *prometheus) post(path, method string) error {
	return expect.Send(context.Background(), method, p.url+path, "").Served()
}

// target is an address to scrape, with the labels from a PodMonitor.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// scrape makes Prometheus scrape these targets, in place of those of an earlier call with the name.
func (p *prometheus) scrape(t *testing.T, name string, targets []target) {
	t.Helper()
	p.write(t, filepath.Join("targets", name+".json"), targets)
}

// evaluate makes Prometheus evaluate these rules.
func (p *prometheus) evaluate(t *testing.T, name string, rules any) {
	t.Helper()
	p.write(t, filepath.Join("rules", name+".json"), rules)
	if err := p.post("/-/reload", http.MethodPost); err != nil {
		t.Fatal(err)
	}
}

func (p *prometheus) write(t *testing.T, file string, content any) {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	expect.Replaced(t, filepath.Join(p.dir, file), string(text))
}

// sample is a value of a series at a time.
type sample struct {
	labels map[string]string
	at     float64 // seconds since 1970
	value  float64
}

// query returns the values of a query at a time.
func (p *prometheus) query(t *testing.T, query string, at time.Time) []sample {
	t.Helper()
	return p.ask(t, "/api/v1/query", url.Values{"query": {query}, "time": {seconds(at)}})
}

// queryRange returns the values of a query at each second of a time.
func (p *prometheus) queryRange(t *testing.T, query string, from, to time.Time) []sample {
	t.Helper()
	return p.ask(t, "/api/v1/query_range", url.Values{"query": {query}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {"1"}})
}

func seconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

// point is a time and a value, a text, in an answer.
type point [2]json.RawMessage

func (p *prometheus) ask(t *testing.T, path string, parameters url.Values) (all []sample) {
	t.Helper()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  *point
				Values []point
			}
		}
	}
	p.get(t, path+"?"+parameters.Encode(), &answer)
	if answer.Error != "" {
		t.Fatalf("%s: %s", parameters.Get("query"), answer.Error)
	}
	for _, series := range answer.Data.Result {
		if series.Value != nil {
			series.Values = append(series.Values, *series.Value)
		}
		for _, v := range series.Values {
			s := sample{labels: series.Metric}
			var text string
			err := errors.Join(json.Unmarshal(v[0], &s.at), json.Unmarshal(v[1], &text))
			if err == nil {
				s.value, err = strconv.ParseFloat(text, 64)
			}
			if err != nil {
				t.Fatalf("%s: %v", parameters.Get("query"), err)
			}
			all = append(all, s)
		}
	}
	return all
}

// get decodes an answer of the API.
func (p *prometheus) get(t *testing.T, path string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(expect.Get(p.url+path).Body), into); err != nil {
		t.Fatal(err)
	}
}
