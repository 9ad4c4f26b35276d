//go:build e2evllm

package e2evllm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// quietLoad returns the load average above which a machine is busy: each of its processors has work without this test.
func quietLoad() float64 { return float64(runtime.NumCPU()) }

// The largest share of processor time of other processes during a measurement: for a comparison of two figures, and for
// a figure with an upper bound that others' work can only increase.
const (
	mostForeign        = 0.08
	mostForeignBounded = 0.2
)

// loadAverage returns the machine's load average over the last minute.
func loadAverage(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	load, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return load
}

// awaitQuiet waits until the machine is quiet, and returns its load.
func awaitQuiet(t *testing.T) float64 {
	t.Helper()
	for deadline := time.Now().Add(*calm); ; time.Sleep(5 * time.Second) {
		load := loadAverage(t)
		if load <= quietLoad() {
			return load
		}
		if time.Now().After(deadline) {
			t.Fatalf("the load is %.2f, and figures are kept only from at most %.2f: wait, or run without -out", load, quietLoad())
		}
	}
}

// used is processor time since some beginning, in ticks: all of it, and that of this process with its descendants.
type used struct{ all, ours int64 }

// usedNow reads /proc (proc_stat(5), proc_pid_stat(5)).
func usedNow(t *testing.T) used {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var u used
	// user nice system idle iowait irq softirq steal
	for i, field := range strings.Fields(string(line))[1:9] {
		if i == 3 || i == 4 {
			continue
		}
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatalf("/proc/stat: %v", err)
		}
		u.all += ticks
	}
	parents, ticks := processes(t)
	for pid := range ticks {
		for at := pid; at > 1; at = parents[at] {
			if at == os.Getpid() {
				u.ours += ticks[pid]
				break
			}
		}
	}
	return u
}

// processes has all processes' parents and used ticks.
func processes(t *testing.T) (parents map[int]int, ticks map[int]int64) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents, ticks = map[int]int{}, map[int]int64{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var pid int
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		// The name before may have spaces and parentheses: state ppid … utime stime.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
		for _, field := range fields[11:13] {
			n, _ := strconv.ParseInt(field, 10, 64)
			ticks[pid] += n
		}
	}
	return parents, ticks
}

// foreignSince is other processes' share of the processor time since then.
func foreignSince(t *testing.T, then used) float64 {
	t.Helper()
	now := usedNow(t)
	all := now.all - then.all
	if all <= 0 {
		return 0
	}
	return max(0, float64(all-(now.ours-then.ours))/float64(all))
}

// wantQuiet fails the test if others' work has distorted figures to be kept.
func wantQuiet(t *testing.T, foreign, most float64) {
	t.Helper()
	if foreign > most {
		complain := t.Logf
		if *out != "" {
			complain = t.Errorf
		}
		complain("others used %.0f %% of the processor time that was used meanwhile; figures are kept up to %.0f %%",
			100*foreign, 100*most)
	}
}
