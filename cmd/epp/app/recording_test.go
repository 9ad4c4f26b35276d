package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
)

// TestEveryProfileIsRecorded checks that the decisions of every profile can be recorded and replayed.
func TestEveryProfileIsRecorded(t *testing.T) {
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for _, name := range config.Profiles() {
		o := testOptions()
		o.Profile = name
		setRecording(&o, 1)
		r := start(t, o)
		granted(t, r.request(t.Context(), [2]string{"x-request-id", "the one"}))
		status, file := r.debug("/debug/recording")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, file)
		}
		if s, err := format.Replay(strings.NewReader(file)); err != nil || s.Arrivals != 1 {
			t.Errorf("%s: %+v %v", name, s, err)
		}
		said, err := format.Explain(strings.NewReader(file), recording.Request{ID: "the one"})
		if err != nil || !strings.Contains(said[0].Story, "It went to 192.0.2.1:8000.") {
			t.Errorf("%s: %v\n%v", name, err, said)
		}
		recorded++
	}
	if recorded < 3 {
		t.Errorf("%d profiles", recorded)
	}
}

// TestRecordedNamesAreHashed checks that with --hash-flow-keys no identity is in a recording, neither a request's nor
// the configuration's.
func TestRecordedNamesAreHashed(t *testing.T) {
	o := testOptions()
	o.HashFlowKeys = true
	o.ConfigText = "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n" + `
flows: { key: ["header:x-tenant"], weights: { sk-secret: 2 }, capacities: { sk-secret: 7 } }
`
	r := start(t, o)
	granted(t, r.request(t.Context(), [2]string{"x-tenant", "sk-secret"}))
	_, file := r.debug("/debug/recording")
	if strings.Contains(file, "sk-secret") || !strings.Contains(file, "sha256:") {
		t.Error("the identity is in the recording, or nothing of it")
	}
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	h, err := format.History(strings.NewReader(file))
	if err != nil || !h.Hidden {
		t.Fatalf("%v, hidden: %t", err, h.Hidden)
	}
	d := r.Config()
	as := func(c dispatch.Config) string {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := as(RecordedConfig(&d, true)); got != as(h.Config) || got == as(RecordedConfig(&d, false)) {
		t.Errorf("the recorded configuration is\n%s, want\n%s", got, as(h.Config))
	}
}

// The recording is on unless the configuration turns it off. If it is off, the page has the key to switch it on, and
// the metric is 0.
func TestRecordingIsOnByDefault(t *testing.T) {
	r := start(t, testOptions())
	granted(t, r.request(t.Context(), [2]string{"x-request-id", "the one"}))
	if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
		t.Errorf("by default: %d", status)
	}
	if got := r.sample("weir_recording_window_seconds"); got <= 0 || got > soon.Seconds() {
		t.Errorf("the window is %v", got)
	}
	o := testOptions()
	setRecording(&o, 0)
	r = start(t, o)
	if status, text := r.debug("/debug/recording"); status != http.StatusNotFound || text != noRecording+"\n" || !strings.Contains(text, "recording: 16") {
		t.Errorf("%d %q, want 404 and the key", status, text)
	}
	if got := r.sample("weir_recording_window_seconds"); got != 0 {
		t.Errorf("the window is %v", got)
	}
	o = testOptions()
	o.DebugPort = DebugOff
	if r := start(t, o); r.pool.recording.now.Load() != nil {
		t.Error("recorded without a reader")
	}
}

// A reload changes the size of the recording at once. Size 0 ends it and frees its memory, and another size begins a
// new one, any number of times.
func TestRecordingIsReloaded(t *testing.T) {
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	r := startReloading(t, "recording: 2\n", nil)
	serve := func() {
		stream := r.request(t.Context())
		granted(t, stream)
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	serve()
	r.pool.recording.now.Load().End() // as an error ends it; the next reload begins another one
	for _, step := range []struct {
		size, status int
	}{{1, 200}, {4, 200}, {0, 404}, {8, 200}, {0, 404}, {2, 200}, {0, 404}} {
		expect.Replaced(t, r.file, fmt.Sprintf("recording: %d\n", step.size))
		expect.True(t, "the reload", func() bool { return r.Config().Recording == int64(step.size) })
		serve()
		status, file := r.debug("/debug/recording")
		if status != step.status {
			t.Errorf("recording: %d: %d", step.size, status)
		}
		if status != http.StatusOK {
			continue
		}
		if s, err := format.Replay(strings.NewReader(file)); err != nil || s.Arrivals == 0 {
			t.Errorf("recording: %d: %+v %v", step.size, s, err)
		}
	}
	if got := r.sample("weir_recording_window_seconds"); got != 0 {
		t.Errorf("the window is %v", got)
	}
	if text := r.log.String(); strings.Count(text, "the recording of decisions begins") != 3 || strings.Contains(text, "next start") {
		t.Errorf("the log says\n%s", text)
	}
}

// A recording that a reload has begun goes on when it is full, with the last of its size.
func TestFullRecordingGoesOn(t *testing.T) {
	r := startReloading(t, "recording: 0\n", nil)
	expect.Replaced(t, r.file, "recording: 1\n")
	expect.True(t, "the recording", func() bool { return r.pool.recording.now.Load() != nil })
	recorder, picks := r.pool.recording.now.Load(), picker{&r.pool.prepared, &r.pool.lengths, r.pool.index, &r.pool.adapters}
	const mebibyte, each = 1 << 20, 4 << 10
	for sent := 0; sent < 3*mebibyte; sent += each {
		placement, err := picks.Prepare("m", request.Subset{}, request.Needs{})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := r.pool.controller.TryEnqueue(t.Context(), &flowcontrol.Request{ID: fmt.Sprintf("%0*d", each, sent), Flow: "f", Placement: placement})
		if err != nil {
			t.Fatal(err)
		}
		lease.OnRequestComplete(flowcontrol.Completion{})
		if sent%(mebibyte/4) == 0 {
			expect.True(t, "a recording of its size", func() bool {
				r.pool.controller.Look(recorder.Seal)
				file, err := recorder.Bytes()
				return err == nil && len(file) < mebibyte*5/4
			})
		}
	}
}

// sample returns the value of a metric without labels.
func (r *running) sample(name string) float64 {
	r.t.Helper()
	_, text := r.get("/metrics")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				r.t.Fatal(err)
			}
			return f
		}
	}
	r.t.Fatalf("%s is missing", name)
	return 0
}

// setRecording sets the size of the recording, in MiB.
func setRecording(o *Options, size int64) {
	before := o.Override
	o.Override = func(d *config.Document) {
		before(d)
		d.Recording = size
	}
}

// stuck is a reader that reads nothing until the test lets it.
type stuck struct {
	*httptest.ResponseRecorder
	writing  chan struct{} // closed to let it read
	let      chan struct{}
	deadline time.Time
}

func (s *stuck) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	close(s.writing)
	<-s.let
	return 0, os.ErrDeadlineExceeded
}

// The follower pauses while a copy of the recording is made. So the next reader waits for nine times as long, unless it
// disconnects.
func TestRecordingIsNotReadAllTheTime(t *testing.T) {
	o := testOptions()
	setRecording(&o, 1)
	r := start(t, o)
	begun := time.Now()
	if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
		t.Fatalf("the first reader: %d", status)
	}
	r.reading.Lock() // the first reader may have its answer without having left
	if rests := r.reading.rests.Sub(begun); rests <= 0 || rests > recordingRest*time.Since(begun)+time.Since(begun) {
		t.Errorf("the next reader waits until %v after the first began", rests)
	}
	r.reading.rests = time.Now().Add(time.Hour)
	r.reading.Unlock()
	w := httptest.NewRecorder()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r.recordingPage(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code == http.StatusOK {
		t.Errorf("%d bytes were read during the pause", w.Body.Len())
	}
}

// A reader that does not read has a deadline, and does not keep others from the recording. As many as there are copies do,
// and the next one is told at once to come again.
func TestRecordingHasFewReaders(t *testing.T) {
	o := testOptions()
	setRecording(&o, 1)
	r := start(t, o)
	var stalled []*stuck
	var all sync.WaitGroup
	for i := range mostCopies {
		if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
			t.Fatalf("beside %d that do not read: %d", i, status)
		}
		expect.True(t, "it has gone", func() bool { return r.reading.readers.Load() == int32(i) })
		s := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), time.Time{}}
		stalled = append(stalled, s)
		all.Go(func() { r.recordingPage(s, httptest.NewRequest(http.MethodGet, "/", nil)) })
		<-s.writing
		if s.deadline.IsZero() {
			t.Error("it may keep the recording in memory forever")
		}
	}
	w := httptest.NewRecorder()
	r.recordingPage(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "10" || !strings.Contains(w.Body.String(), "try again") {
		t.Errorf("one more: %d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, s := range stalled {
		close(s.let)
	}
	all.Wait()
	if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
		t.Errorf("the next reader: %d", status)
	}
}
