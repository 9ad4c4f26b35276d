package integration

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/printable"
)

// A client's model name would clear a terminal, colour it or turn its text around. No page for operators' terminals,
// and no line of the log, has such a character. JSON still distinguishes the names.
func TestNamesCommandNoTerminal(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)}, flags: []string{"--v=1"},
		config: "flows: { key: [model] }\nrequestBody: always\ndecisions: { sample: 1, sink: log }\n",
	})
	tail, err := http.Get(s.epp.DebugURL + "/debug/tail")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tail.Body.Close() })
	model := `"x\u001b[2J\u009b31m\u202eevil\u2028"`
	s.send(ask{body: `{"model":` + model + `,"messages":[{"role":"user","content":"hello"}]}`, header: []string{"x-request-id", "a\u009b31m"}})
	line, err := bufio.NewReader(tail.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, `"model":`+model) || !strings.Contains(line, `"id":"a\u009b31m"`) {
		t.Errorf("%v: the tail has %q", err, line)
	}
	expect.True(t, "the request's line and its record in the log", func() bool { return strings.Count(s.epp.Log.String(), "evil") >= 2 })
	pages := map[string]string{"the tail": line, "the log": s.epp.Log.String()}
	for _, page := range []string{"/debug/status?flow=evil", "/debug/flows", "/debug/statistics", "/debug/rejections", "/statusz"} {
		pages[page] = expect.Page(t, s.epp.DebugURL+page)
	}
	pages["/metrics"] = expect.Page(t, s.epp.MetricsURL+"/metrics")
	for name, text := range pages {
		if i := strings.IndexFunc(strings.NewReplacer("\n", "", "\t", "").Replace(text), printable.Commands); i >= 0 || text == "" {
			t.Errorf("%s has %q", name, text[max(0, i-40):min(len(text), i+40)])
		}
	}
	if !strings.Contains(pages["/metrics"], `weir_flow_requests_total{flow="other"} 1`) {
		t.Error("the metrics do not count the request as that of another flow")
	}
	s.epp.settled()
}
