package simulate

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/recording"
)

// recordingOf simulates a workload and returns the report with the data of its recording.
func recordingOf(t *testing.T, workload, config string, firstTokens bool) (*Report, *recording.History) {
	t.Helper()
	w := readWorkload(t, workload)
	r, err := Run(&Options{
		Config: readConfig(t, config), Engines: w.Pool(), Weights: w.Weights(), Seed: 1, FirstTokens: firstTokens, Record: true,
	}, w.Requests(1))
	if err != nil {
		t.Fatal(err)
	}
	format, err := recording.NewFormat(placement.On(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := format.Replay(bytes.NewReader(r.Recording)); err != nil {
		t.Fatal("the recording differs from the run: ", err)
	}
	h, err := format.History(bytes.NewReader(r.Recording))
	if err != nil {
		t.Fatal(err)
	}
	return r, h
}

// A recording has the course of events. Its arrivals under its own configuration give the same again.
func TestARecordingUnderItsOwnConfiguration(t *testing.T) {
	for _, c := range []struct{ workload, config string }{{"weights", "small"}, {"groups", "small"}, {"tiers", "preempt"}, {"crowd", "auto"}} {
		was, h := recordingOf(t, c.workload, c.config, true)
		again, err := RunRecorded(&RecordedOptions{Name: Recorded, Seed: 1}, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*Report{HistoryFigures(h), again} {
			if got.All.Requests != was.All.Requests || got.All.Answered != was.All.Answered || got.All.Cost != was.All.Cost {
				t.Errorf("%s, %s: %+v, was %+v", c.workload, got.Name, got.All, was.All)
			}
			for reason, n := range was.All.Rejected {
				if got.All.Rejected[reason] != n {
					t.Errorf("%s, %s: %d ended as %s, were %d", c.workload, got.Name, got.All.Rejected[reason], reason, n)
				}
			}
			if math.Abs(got.All.Wait.Mean-was.All.Wait.Mean) > 0.001*was.All.Wait.Mean {
				t.Errorf("%s, %s: a mean wait of %v s, was %v s", c.workload, got.Name, got.All.Wait.Mean, was.All.Wait.Mean)
			}
		}
	}
}

// Under another configuration the same arrivals have that configuration's results.
func TestARecordingUnderAnotherConfiguration(t *testing.T) {
	was, h := recordingOf(t, "weights", "small", true)
	open := readConfig(t, "open")
	got, err := RunRecorded(&RecordedOptions{Name: "open", Config: &open}, h)
	if err != nil {
		t.Fatal(err)
	}
	if got.All.Answered != was.All.Requests || got.All.Wait.Max != 0 {
		t.Errorf("without a queue: %+v, want all %d answered at once", got.All, was.All.Requests)
	}
	// A small queue rejects most requests with long waits.
	small := readConfig(t, "small")
	small.FairRequestQueue.TotalCapacity, small.FairRequestQueue.FlowCapacity = 4, 4
	if got, err = RunRecorded(&RecordedOptions{Name: "few places", Config: &small}, h); err != nil {
		t.Fatal(err)
	}
	if got.All.Rejected["queue-full"]+got.All.Rejected["displaced"] == 0 || got.All.Wait.Mean > was.All.Wait.Mean/2 {
		t.Errorf("with 4 places: %+v", got.All)
	}
}

// A part of a recording begins with the requests present, and ends with the remaining ones.
func TestARequestThatWasNotSeenToItsEndTakesTheMean(t *testing.T) {
	_, h := recordingOf(t, "groups", "small", false)
	half := h.From.Add(h.To.Sub(h.From) / 2)
	cut := *h
	cut.Visits = nil
	for _, v := range h.Visits {
		if v.At.Before(half) {
			v := *v
			for _, at := range []*time.Time{&v.Dispatched, &v.FirstByte, &v.Ended} {
				if at.After(half) {
					*at = time.Time{}
				}
			}
			cut.Visits = append(cut.Visits, &v)
		}
	}
	got, err := RunRecorded(&RecordedOptions{}, &cut)
	if err != nil || got.All.Answered != len(cut.Visits) {
		t.Errorf("%d of %d answered: %v", got.All.Answered, len(cut.Visits), err)
	}
	if _, err := RunRecorded(&RecordedOptions{}, &recording.History{Config: h.Config, Scheduling: h.Scheduling}); err == nil {
		t.Error("a recording without arrivals is no error")
	}
}
