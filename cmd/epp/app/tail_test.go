package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// readTail opens the tail, and waits for its start.
func (r *running) readTail(query string) *bufio.Scanner {
	r.t.Helper()
	before := r.pool.tail.reading.Load()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/debug/tail%s", r.Ports().Debug, query))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		r.t.Fatalf("%d: %s", response.StatusCode, text)
	}
	expect.True(r.t, "it is read", func() bool { return r.pool.tail.reading.Load() == before+1 })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

func next(t *testing.T, lines *bufio.Scanner) (e status.Ended) {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("there is no further line: %v", lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
		t.Fatalf("%v: %s", err, lines.Text())
	}
	return e
}

// Each ended request is a line, by flow and by outcome.
func TestTailPage(t *testing.T) {
	o := testOptions()
	o.ConfigText = "flows: { key: [\"header:x-user\"] }"
	r := start(t, o)
	all, ofBob := r.readTail(""), r.readTail("?flow=bob&outcome=dispatched,flow-full")
	for _, user := range []string{"ann", "bob"} {
		stream := r.request(t.Context(), [2]string{"x-user", user}, [2]string{"x-request-id", "of-" + user})
		granted(t, stream)
		_ = stream.CloseSend()
		if e := next(t, all); e.Flow != user || e.ID != "of-"+user || e.Outcome != "dispatched" || !e.Bypass || e.Endpoint != "192.0.2.1:8000" || e.Model != "chat" || e.At.IsZero() {
			t.Errorf("%s: %+v", user, e)
		}
	}
	if e := next(t, ofBob); e.Flow != "bob" {
		t.Errorf("of bob: %+v", e)
	}
	r.pool.tail.Ended(&extproc.Ended{Flow: "bob", Outcome: flowcontrol.OutcomeInternal, Err: flowcontrol.ErrBadRequest})
	r.pool.tail.Ended(&extproc.Ended{Flow: "bob", Outcome: flowcontrol.OutcomeFlowFull, Err: flowcontrol.ErrBadRequest, RetryAfter: time.Second})
	if e := next(t, ofBob); e.Outcome != "flow-full" || e.Error == "" || e.RetryAfter != 1 {
		t.Errorf("of bob: %+v", e)
	}
	if code, text := r.debug("/debug/tail?outcome=fine"); code != 400 || !strings.Contains(text, `outcome: "fine": must be one of dispatched, `) {
		t.Errorf("%d %s", code, text)
	}
	for range tailReaders - 2 {
		r.readTail("")
	}
	if code, _ := r.debug("/debug/tail"); code != 503 {
		t.Errorf("one reader too many: %d", code)
	}
}

// A reader that does not read keeps its lines so far, and gets a notice at the end. It delays no request.
func TestSlowReaderIsDropped(t *testing.T) {
	r := start(t, testOptions())
	slow := r.readTail("")
	quick := &tailReader{lines: make(chan extproc.Ended, tailLines)}
	if err := r.pool.tail.join(quick); err != nil {
		t.Fatal(err)
	}
	n, long := 0, strings.Repeat("m", 1000)
	for ; r.pool.tail.reading.Load() == 2 && n < 1_000_000; n++ {
		r.pool.tail.Ended(&extproc.Ended{Flow: fmt.Sprint(n), Model: long})
		if e := <-quick.lines; e.Flow != fmt.Sprint(n) {
			t.Fatalf("the quick one got %s", e.Flow)
		}
	}
	if n < tailLines || n == 1_000_000 {
		t.Fatalf("dropped after %d lines", n)
	}
	seen := 0
	for {
		e := next(t, slow)
		if e.Dropped != "" {
			break
		}
		if e.Flow != fmt.Sprint(seen) {
			t.Fatalf("line %d is %s", seen, e.Flow)
		}
		seen++
	}
	if seen < tailLines || seen >= n || slow.Scan() {
		t.Errorf("it has read %d lines of %d, or more after the last", seen, n)
	}
	r.pool.tail.leave(quick)
	if r.pool.tail.Wanted() {
		t.Error("somebody reads")
	}
}
