package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/recording"
)

// recorded returns a recording of an hour. In its second quarter an engine was slow, or a tenant sent ten times as much.
func recorded(noisy bool) *recording.List {
	begin := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	l := &recording.List{From: begin, To: begin.Add(time.Hour)}
	for minute := range 60 {
		inside := minute >= 15 && minute < 30
		for i := range 10 {
			at := begin.Add(time.Duration(minute)*time.Minute + time.Duration(i)*time.Second)
			r := recording.Listed{
				Number: uint64(len(l.Requests) + 1), Flow: "quiet", Tier: "default", At: at, Until: at.Add(time.Second), Waited: time.Second,
				Outcome: "dispatched", Endpoint: fmt.Sprintf("10.0.0.%d:80", 1+i%2), Service: 2 * time.Second,
			}
			if inside && !noisy && i%2 == 1 {
				r.Service = 20 * time.Second
			}
			l.Requests = append(l.Requests, r)
			if inside && noisy || i == 0 {
				r.Number, r.Flow, r.Outcome, r.Endpoint, r.Service, r.Waited = uint64(len(l.Requests)+1), "noisy\x1b", "ttl-expired", "", 0, 30*time.Second
				l.Requests = append(l.Requests, r)
			}
		}
	}
	return l
}

// narrow returns a text with single blanks.
func narrow(out *bytes.Buffer) string {
	var b strings.Builder
	for line := range strings.Lines(out.String()) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

// The tables distinguish a tenant's cause from an engine's: each has the rest of the recording beside it.
func TestExplainComparesAPartWithTheRest(t *testing.T) {
	o := explainOptions{last: 45 * time.Minute, until: 30*time.Minute + time.Second, slowest: 10}
	for noisy, want := range map[bool][]string{
		true: {
			"noisy\\x1b 150 0.17 0.02 150 1h15m0s 30s",
			"quiet 150 0.17 0.17 0 2m30s 1s",
			"10.0.0.1:80 75 0.08 0.08 2s 2s",
			"10.0.0.2:80 75 0.08 0.08 2s 2s",
		},
		false: {
			"noisy\\x1b 15 0.02 0.02 15 7m30s 30s",
			"quiet 150 0.17 0.17 0 2m30s 1s",
			"10.0.0.2:80 75 0.08 0.08 20s 2s",
			"10.0.0.1:80 75 0.08 0.08 2s 2s",
		},
	} {
		all := recorded(noisy)
		list := all.Between(o.window(all.From, all.To))
		var out bytes.Buffer
		o.sayList(&out, list, all, nil)
		for _, line := range want {
			if !strings.Contains(narrow(&out), line) {
				t.Errorf("noisy %v: there is no line %q in\n%s", noisy, line, &out)
			}
		}
		if first := "in the last 45m0s until 30m1s before its end"; !strings.Contains(out.String(), first) {
			t.Errorf("%q is not said:\n%s", first, &out)
		}
	}
}

// The whole recording has no rest. Of many flows the tables have only those with the longest waits.
func TestExplainOfManyFlows(t *testing.T) {
	all := recorded(false)
	for i := range all.Requests {
		if r := &all.Requests[i]; r.Flow == "quiet" {
			r.Flow = fmt.Sprint("tenant-", i%12)
		}
	}
	var out bytes.Buffer
	(&explainOptions{}).sayList(&out, all, all, nil)
	for _, want := range []string{"and 3 more flows\n", "0.02 - 60 30m0s", "10.0.0.2:80 300 0.08 - 6.5s -", "of which 660 waited"} {
		if !strings.Contains(narrow(&out), want) {
			t.Errorf("%q is not said:\n%s", want, &out)
		}
	}
}

func TestExplainWindowFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nothing")
	checkCommands(t, map[string]commandTest{
		"until alone is negative": {[]string{"explain", file, "--until=-1s"}, 2, nil, []string{"--until: -1s: must be at least 0s, and less than --last"}},
		"until is the beginning":  {[]string{"explain", file, "--last=5m", "--until=5m"}, 2, nil, []string{"--until: 5m0s: must be at least 0s, and less than --last"}},
		"of one request":          {[]string{"explain", file, "--request=1", "--until=5m"}, 2, nil, []string{"--until and --slowest have no effect"}},
		"fine":                    {[]string{"explain", file, "--until=5m"}, 1, nil, []string{"no such file"}},
	})
}
