package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/weir-epp/weir/pkg/decision"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func count(t *testing.T, c prometheus.Counter) int {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int(m.GetCounter().GetValue())
}

func toFile(t *testing.T) Config {
	t.Helper()
	return Config{Kind: File, Path: filepath.Join(t.TempDir(), "decisions.json"), MaxBytes: MinBytes}
}

func record(n int) *decision.Record {
	return &decision.Record{ID: fmt.Sprint("r", n), Outcome: "dispatched"}
}

// written runs a sink that has got records until it ends.
func written(s *Sink) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	s.Run(ctx)
}

// A sink that does not write holds up nobody: it drops what it has no room for, and counts that. What it has taken it writes,
// before it ends.
func TestPutNeverWaits(t *testing.T) {
	cfg := toFile(t)
	cfg.MaxBytes = 1 << 20
	s := New(cfg, logr.Discard())
	for i := range mostRecords + 100 {
		s.Put(record(i))
	}
	if n := count(t, s.dropped); n != 100 {
		t.Errorf("%d were dropped", n)
	}
	written(s)
	text, err := os.ReadFile(s.config.Load().Path)
	if lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"); err != nil || len(lines) != mostRecords || count(t, s.written) != mostRecords {
		t.Errorf("%d lines, %v", len(lines), err)
	} else if r := new(decision.Record); json.Unmarshal([]byte(lines[3]), r) != nil || r.ID != "r3" {
		t.Errorf("%s", lines[3])
	}
}

// The file and its predecessor take at most twice the size, and a line is never split.
func TestFileIsBounded(t *testing.T) {
	cfg := toFile(t)
	for round := range 5 {
		s := New(cfg, logr.Discard())
		for i := range mostRecords {
			s.Put(record(round*mostRecords + i))
		}
		written(s)
	}
	last := -1
	for _, name := range []string{cfg.Path + ".1", cfg.Path} {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > MinBytes {
			t.Fatalf("%s: %d bytes, %v", name, len(text), err)
		}
		for line := range bytes.Lines(text) {
			var r decision.Record
			var n int
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			if _, _ = fmt.Sscanf(r.ID, "r%d", &n); last >= 0 && n != last+1 {
				t.Fatalf("%d after %d", n, last)
			}
			last = n
		}
	}
	if last != 5*mostRecords-1 {
		t.Errorf("the last record is %d", last)
	}
}

// A file that cannot be written, and a pipe that nobody reads, lose records and nothing else. A sink that is told another
// file goes on there.
func TestFileThatCannotBeWritten(t *testing.T) {
	good := toFile(t)
	bad := good
	bad.Path = filepath.Join(filepath.Dir(good.Path), "nowhere", "x")
	directory := good
	directory.Path = filepath.Dir(good.Path)
	device := Config{Kind: File, Path: os.DevNull, MaxBytes: MinBytes}
	for _, cfg := range []Config{bad, directory, device, {Kind: File, Path: "/dev/full", MaxBytes: MinBytes}} {
		var said []string
		s := New(cfg, funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}))
		s.Put(record(1))
		s.Put(record(2))
		written(s)
		if count(t, s.failed) != 2 || len(said) != 1 || !strings.Contains(said[0], "decisions.file") {
			t.Errorf("%s: %d failed; the log says %q", cfg.Path, count(t, s.failed), said)
		}
		if s.Failure() == nil {
			t.Errorf("%s: no failure", cfg.Path)
		}
		s.Reconfigure(good)
		s.tried = s.tried.Add(-retryAfter)
		s.Put(record(3))
		written(s)
		if count(t, s.written) != 1 || s.Failure() != nil {
			t.Errorf("%s: %d were written to the next file, %v", cfg.Path, count(t, s.written), s.Failure())
		}
	}
}

// A file takes exactly its size. Beyond it, it grows no more, even if it cannot be renamed.
func TestFileThatCannotBeRenamed(t *testing.T) {
	cfg := toFile(t)
	if err := os.MkdirAll(filepath.Join(cfg.Path+".1", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := open(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, line := range []string{"1234567\n", "abcdefg\n"} {
		if err := f.append([]byte(line), 16); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.append([]byte("\n"), 16); err == nil {
		t.Error("a line beyond the size was written")
	}
	if text, err := os.ReadFile(cfg.Path); string(text) != "1234567\nabcdefg\n" || err != nil {
		t.Errorf("%q %v", text, err)
	}
}

// A sink that is told another one while it runs loses nothing.
func TestReconfigure(t *testing.T) {
	var mu sync.Mutex
	var said []string
	s := New(toFile(t), funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, args)
	}, funcr.Options{}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	path := s.config.Load().Path
	for i := range 100 {
		if i == 50 {
			s.Reconfigure(Config{Kind: Log, MaxBytes: MinBytes})
		}
		s.Put(record(i))
	}
	stop()
	<-ended
	text, _ := os.ReadFile(path)
	if n := strings.Count(string(text), "\n") + len(said); n != 100 || count(t, s.written) != 100 || len(said) < 50 {
		t.Errorf("%d records in the file and the log, %d in the log", n, len(said))
	}
	if !strings.Contains(said[len(said)-1], `"id":"r99"`) && !strings.Contains(said[len(said)-1], "r99") {
		t.Errorf("the last line is %s", said[len(said)-1])
	}
}

// Every problem is reported.
func TestValidate(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		want string
	}{
		{Config{Kind: "syslog", MaxBytes: MinBytes}, `Kind: "syslog": must be one of log, file`},
		{Config{Kind: File, MaxBytes: MinBytes}, `Path: "": must be given with Kind: file`},
		{Config{Kind: File, Path: "x", MaxBytes: MinBytes}, `Path: "x": must be an absolute path`},
		{Config{Kind: Log, MaxBytes: 1}, "MaxBytes: 1: must be from 65536 to 1099511627776"},
	} {
		if err := test.cfg.Validate(); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	cfg := Config{Kind: Log, MaxBytes: MinBytes}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}
