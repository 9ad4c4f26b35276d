package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
)

// TestEveryProfileIsRecorded: whatever profile this build serves, its decisions can be recorded and repeated.
func TestEveryProfileIsRecorded(t *testing.T) {
	format, err := Recordings()
	if err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for _, name := range config.Profiles() {
		o := testOptions()
		o.Profile, o.Record = name, 1
		r := start(t, o)
		granted(t, r.request(t.Context(), [2]string{"x-request-id", "the one"}))
		status, file := r.debug("/debug/recording")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, file)
		}
		if s, err := format.Replay(strings.NewReader(file)); err != nil || s.Arrivals != 1 {
			t.Errorf("%s: %+v %v", name, s, err)
		}
		if said, err := format.Explain(strings.NewReader(file), "the one"); err != nil || !strings.Contains(said, "It went to 192.0.2.1:8000.") {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		recorded++
	}
	if recorded < 3 {
		t.Errorf("%d profiles", recorded)
	}
}

// TestRecordedNamesAreHashed: with --hash-flow-keys no identity is in a recording, whether a request or the configuration
// names it.
func TestRecordedNamesAreHashed(t *testing.T) {
	o := testOptions()
	o.Record, o.HashFlowKeys = 1, true
	o.ConfigText = "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n" + `
flows: { key: ["header:x-tenant"], weights: { sk-secret: 2 }, capacities: { sk-secret: 7 } }
`
	r := start(t, o)
	granted(t, r.request(t.Context(), [2]string{"x-tenant", "sk-secret"}))
	_, file := r.debug("/debug/recording")
	if strings.Contains(file, "sk-secret") || !strings.Contains(file, "sha256:") {
		t.Error("the identity is in the recording, or nothing of it")
	}
}

// Without --record there is no recording.
func TestNoRecordingUnasked(t *testing.T) {
	status, text := start(t, testOptions()).debug("/debug/recording")
	if status != http.StatusNotFound || !strings.Contains(text, "--record=16") {
		t.Errorf("%d %q, want 404 and the flag", status, text)
	}
}

// TestRecordIsValidated: a size that cannot be, and a recording that nobody could read.
func TestRecordIsValidated(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Record = -1 }, "--record: -1: must be from 0 to 1024 MiB"},
		{func(o *Options) { o.Record = 1025 }, "--record: 1025: must be from 0 to 1024 MiB"},
		{func(o *Options) { o.Record, o.DebugPort = 1, DebugOff }, "--record: 1: there is no --debug-port"},
	} {
		o := testOptions()
		c.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// stuck is a reader that takes nothing until it is let.
type stuck struct {
	*httptest.ResponseRecorder
	writing  chan struct{} // closed when it is to take something
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

// While a copy of the recording is made its follower stands still. So after it the next reader waits for nine times as
// long, unless it goes away.
func TestRecordingIsNotReadAllTheTime(t *testing.T) {
	o := testOptions()
	o.Record = 1
	r := start(t, o)
	begun := time.Now()
	if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
		t.Fatalf("the first reader: %d", status)
	}
	r.reading.Lock() // the first reader may have its answer, and not yet have gone
	if rests := r.reading.rests.Sub(begun); rests <= 0 || rests > recordingRest*time.Since(begun)+time.Since(begun) {
		t.Errorf("the next reader waits until %v after the first began", rests)
	}
	r.reading.rests = time.Now().Add(time.Hour)
	r.reading.Unlock()
	w := httptest.NewRecorder()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r.recordingPage(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Body.Len() > 0 {
		t.Errorf("%d bytes were read during the pause", w.Body.Len())
	}
}

// TestRecordingHasOneReader: a reader that does not read has a deadline, and as long as it lasts nobody else can make
// further copies of the recording. After it the next one reads.
func TestRecordingHasOneReader(t *testing.T) {
	o := testOptions()
	o.Record = 1
	r := start(t, o)
	s := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), time.Time{}}
	ended := make(chan struct{})
	go func() {
		r.recordingPage(s, httptest.NewRequest(http.MethodGet, "/", nil))
		close(ended)
	}()
	<-s.writing
	if s.deadline.IsZero() {
		t.Error("it may keep the recording in memory forever")
	}
	if status, text := r.debug("/debug/recording"); status != http.StatusServiceUnavailable || !strings.Contains(text, "try again") {
		t.Errorf("a second reader: %d", status)
	}
	close(s.let)
	<-ended
	if status, _ := r.debug("/debug/recording"); status != http.StatusOK {
		t.Errorf("the next reader: %d", status)
	}
}
