package observe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
)

// scrapesBefore is the number of scrapes of a rig before its check.
const scrapesBefore = 10

// scrapes waits until Prometheus has scraped all of a rig so often.
func (r *rig) scrapes(times int) {
	r.t.Helper()
	up := fmt.Sprintf(`min(count_over_time(up{namespace=%q,job=~"%s(/envoy)?"}[5m]))`, namespace, r.name)
	expect.Eventually(r.t, "it is scraped", func() error {
		if got := r.prometheus.query(r.t, up, time.Now()); len(got) != 1 || got[0].value < float64(times) {
			return fmt.Errorf("%s is %v, want %d", up, got, times)
		}
		return nil
	})
}

// healthy waits until Prometheus has scraped a rig for some time. It checks that no alert is pending, no panel had a
// red value at any second of that time, and these panels have values.
func (r *rig) healthy(shown ...string) {
	r.t.Helper()
	r.scrapes(scrapesBefore)
	now := time.Now()
	for _, p := range allPanels(r.t) {
		r.green(p, r.began, now, slices.Contains(shown, p.Title))
	}
	if got := r.alerts(); len(got) > 0 {
		r.t.Errorf("nothing is wrong, and the alerts %v are pending or firing", got)
	}
}

// green checks that a panel had no red value in a time, and had values if it is expected to show some.
func (r *rig) green(p panel, from, to time.Time, shows bool) {
	r.t.Helper()
	values := 0
	for _, query := range p.queries(namespace, r.name) {
		for _, s := range r.prometheus.queryRange(r.t, query, from, to) {
			values++
			if p.red(s.value) {
				r.t.Errorf("nothing is wrong, and %q is red: %v of %v", p.Title, s.value, s.labels)
				break
			}
		}
	}
	if values == 0 && shows {
		r.t.Errorf("%q has no value", p.Title)
	}
}

// becomesRed waits until a panel has a red value with this value of the label. The label query is the letter of its
// query.
func (r *rig) becomesRed(title, label, value string) {
	r.t.Helper()
	expect.Eventually(r.t, title, func() error {
		values := r.now(title)
		for _, s := range values {
			if s.red && s.labels[label] == value {
				return nil
			}
		}
		return fmt.Errorf("%q is not red for %s %s: %v", title, label, value, values)
	})
}

// red is becomesRed, and checks that no other value of this label is red.
func (r *rig) red(title, label, value string) {
	r.t.Helper()
	r.becomesRed(title, label, value)
	onlyRed(r.t, title, r.now(title), label, value)
}

// now returns the values of a panel.
func (r *rig) now(title string) []judged {
	r.t.Helper()
	return judge(r.t, r.prometheus, panelOf(r.t, title), r.name, time.Now())
}

// judged is a value of a panel, and whether it is red.
type judged struct {
	sample
	red bool
}

// judge returns the values of a panel at a time.
func judge(t *testing.T, from *prometheus, p panel, job string, at time.Time) (all []judged) {
	t.Helper()
	for i, query := range p.queries(namespace, job) {
		for _, s := range from.query(t, query, at) {
			s.labels["query"] = p.Targets[i].RefID
			all = append(all, judged{s, p.red(s.value)})
		}
	}
	return all
}

// onlyRed checks that of the values with the label exactly those with this value are red.
func onlyRed(t *testing.T, title string, values []judged, label, value string) {
	t.Helper()
	found := false
	for _, s := range values {
		switch of, has := s.labels[label]; {
		case has && s.red && of != value:
			t.Errorf("%q is red for %v, and only %s is at fault: %v", title, s.labels, value, s.value)
		case has && s.red:
			found = true
		}
	}
	if !found {
		t.Errorf("%q is not red for %s %s: %v", title, label, value, values)
	}
}
