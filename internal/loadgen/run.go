package loadgen

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Progress reports a run's progress as done of total. total does not change, and done never falls. It is called by one
// goroutine at a time, a few times per second, and finally with done equal to total.
type Progress func(done, total int)

// progressParts is the total of a run's progress; progressEvery is the time between two reports.
const (
	progressParts = 1000
	progressEvery = 100 * time.Millisecond
)

// Report is the measurements of a run.
type Report struct {
	// Warmup is the plan's: the time from the start that summaries exclude.
	Warmup time.Duration
	// Length is the time from the start to the last moment of sending, or to the last answer if all requests were sent
	// and answered before.
	Length time.Duration
	// Tracks holds the results of each workload, in the plan's order.
	Tracks []Track
}

// Track is the results of one workload in the order of sending.
type Track struct {
	Tenant  string
	Results []Result
}

// Tenants lists the tenants in the order of the plan, each once.
func (r *Report) Tenants() []string {
	var tenants []string
	seen := make(map[string]bool)
	for _, track := range r.Tracks {
		if !seen[track.Tenant] {
			seen[track.Tenant] = true
			tenants = append(tenants, track.Tenant)
		}
	}
	return tenants
}

// Run runs the plan. It returns when every request has ended or was cut off: at the latest Drain after the end of the
// plan's longest workload. When the context ends, requests in flight are cut off, and Run returns the report so far
// with the context's cause. progress may be nil.
func Run(ctx context.Context, client *Client, plan Plan, progress Progress) (*Report, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	sessions := make([]*session, len(plan.Workloads))
	for i := range plan.Workloads {
		s, err := newSession(client, &plan.Workloads[i])
		if err != nil {
			return nil, err
		}
		sessions[i] = s
	}

	epoch := time.Now()
	bounded, cancel := context.WithDeadlineCause(ctx, epoch.Add(plan.length()+plan.Drain), ErrCutOff)
	defer cancel()

	ended := make(chan struct{})
	var reporter sync.WaitGroup
	if progress != nil {
		reporter.Go(func() { reportProgress(progress, sessions, epoch, plan.length(), ended) })
	}
	var running sync.WaitGroup
	for _, s := range sessions {
		running.Go(func() { s.run(bounded, epoch) })
	}
	running.Wait()
	close(ended)
	reporter.Wait()

	report := &Report{Warmup: plan.Warmup, Length: min(plan.length(), time.Since(epoch))}
	for _, s := range sessions {
		report.Tracks = append(report.Tracks, Track{Tenant: s.workload.Tenant, Results: s.results[:s.sent()]})
	}
	return report, context.Cause(ctx)
}

// session is one workload being run.
type session struct {
	// Immutable.
	client   *Client
	workload *Workload
	address  *url.URL
	header   http.Header

	// Set by Run, before any request.
	epoch, begin, end time.Time

	// claimed counts the requests begun, and may exceed the length of results; slot i is written by the goroutine that
	// claimed i.
	claimed atomic.Int64
	results []Result
}

func newSession(client *Client, workload *Workload) (*session, error) {
	address, err := client.address(workload.Request.Path)
	if err != nil {
		return nil, err
	}
	header := workload.Request.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	if _, ok := header["User-Agent"]; !ok {
		header.Set("User-Agent", "weir-loadgen")
	}
	if workload.Request.Stream {
		header.Set("Accept", "text/event-stream")
	}
	return &session{
		client: client, workload: workload, address: address, header: header,
		results: make([]Result, workload.Requests),
	}, nil
}

func (s *session) run(ctx context.Context, epoch time.Time) {
	s.epoch = epoch
	s.begin = epoch.Add(s.workload.Begin)
	s.end = s.begin.Add(s.workload.Duration)
	if sleepUntil(ctx, s.begin) {
		s.workload.Arrivals.run(ctx, s)
	}
}

// claim returns the next request's index; ok is false when all have been claimed.
func (s *session) claim() (index int, ok bool) {
	index = int(s.claimed.Add(1) - 1)
	return index, index < len(s.results)
}

// sent returns the number of requests claimed.
func (s *session) sent() int { return min(int(s.claimed.Load()), len(s.results)) }

// result initialises and returns the slot of a claimed request.
func (s *session) result(index int, start time.Time) *Result {
	result := &s.results[index]
	result.Tenant = s.workload.Tenant
	result.Start = start.Sub(s.epoch)
	return result
}

// record writes the result of a request that was not sent.
func (s *session) record(index int, start time.Time, err error) {
	s.result(index, start).Err = err
}

// reportProgress reports until ended is closed. Progress is the larger of the fraction of time and the fraction of
// requests.
func reportProgress(
	progress Progress, sessions []*session, epoch time.Time, length time.Duration, ended <-chan struct{},
) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	progress(0, progressParts)
	for {
		select {
		case <-ended:
			progress(progressParts, progressParts)
			return
		case <-ticker.C:
		}
		sent, total := 0, 0
		for _, s := range sessions {
			sent += s.sent()
			total += len(s.results)
		}
		part := max(float64(time.Since(epoch))/float64(length), float64(sent)/float64(total))
		progress(int(min(part, 1)*progressParts), progressParts)
	}
}
