package app

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/version"
)

// statusPage writes, as text, the answers to an operator's first questions: the version, whether the configuration is
// the newest, the waiting requests, and the requests in flight by endpoint.
func (a *App) statusPage(out io.Writer, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	d, s := a.configuration.current(), a.pool.controller.State()
	line("epp\t%s", version.Info())
	line("configuration\t%s", a.configuration.summary(now))
	if err := a.files.Err(); err != nil {
		line("files\tNOT FOLLOWED, read at SIGHUP only: %v", err)
	}
	line("profile\t%s", d.Profile)
	line("ready\t%t%s", a.readiness.ready(), whyNot(a.readiness.lacks()))
	if a.options.kubernetes() {
		line("pool\t%s\tin namespace %s", a.options.poolLabel(), a.options.PoolNamespace)
		if waiting := a.pool.cluster.Waiting(); len(waiting) > 0 {
			line("waits for\t%s", strings.Join(waiting, ", "))
		}
	}
	if a.pool.replication != nil {
		line("elsewhere\t%d\trequests in flight from other replicas, which count as stock", a.pool.foreignTotal.Load())
	}
	line("draining\t%t", s.Draining)
	line("streams\t%d\t%s", a.pool.server.Streams(), lastStream(a.pool.server.LastStream(), now))
	if a.handshakes == nil {
		line("handshakes\tnone: without TLS")
	} else {
		line("handshakes\t%s", a.handshakes.summary(now))
	}
	line("")
	line("queued\t%d of %d\tin %s", s.Queued, d.FairRequestQueue.TotalCapacity, counted(s.Flows, "flow"))
	line("stock\t%d\tlower bound %g, watermark %g, upper bound %g", s.Stock, s.LowerBound, s.Watermark, s.UpperBound)
	if d.RequestQueueController.WatermarkTokensPerBackend > 0 {
		line("tokens\t%d\tof the stock; each endpoint has its own bound", s.Tokens)
	}
	line("promoted\t%d\tleases in flight that were granted by promotion", s.PromotedHeld)
	line("released\t%d\tof %d attempts", s.Successes, s.Attempts)
	line("")
	a.costLines(&d, now, line)
	line("")
	a.tierTable(&d, line)
	if text := reservedNote(a.pool.controller.Tiers()); text != "" {
		line("reserved\t%s", text)
	}
	roleTable(&d, &s, line)
	a.pool.naming.namesTable(line)
	line("")
	line("endpoint\tready\tin flight\telsewhere\tlower bound\tupper bound\ttokens\ttheir bound\trunning\twaiting\tscraped\tadapters\tcircuit\toldest\tserved elsewhere\trole\tmodels")
	for _, e := range a.pool.loads() {
		line("%s\t%t\t%d\t%d\t%g\t%g\t%s\t%s\t%s\t%s\t%v\t%d\t%s\t%v", e.Address, e.Ready, e.InFlight, e.Foreign, e.lower(), e.upper(),
			inTokens(&e.Share), a.pool.engineColumns(e.ID, now), a.pool.adapterColumn(e.ID), e.circuit(), e.oldest(now).Round(time.Millisecond), a.pool.server.ServedElsewhere(e.Address), cmp.Or(e.Work.String(), "both"), e.Models)
	}
	return w.Flush()
}

// lastStream writes when the last stream came. Without any, Envoy has not reached this Weir.
func lastStream(at, now time.Time) string {
	if at.IsZero() {
		return "none has come yet"
	}
	return fmt.Sprintf("the last one came %v ago", max(0, now.Sub(at)).Round(time.Second))
}

// counted returns a number of things, such as "1 flow" or "2 flows".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// tierTable writes a row for each tier, the highest first.
func (a *App) tierTable(d *config.Document, line func(format string, args ...any)) {
	fair := map[string]string{}
	if d.Flows.Discipline == config.DisciplineVTC {
		for _, f := range a.pool.controller.Fairness() {
			fair[f.Tier] = fmt.Sprintf("%.0f\t%.0f", f.Gap, f.Bound)
		}
	}
	line("tier\tqueued\tin flight\tdisplaced\tpromoted\tgap\tbound")
	for _, t := range a.pool.controller.Tiers() {
		line("%s\t%d\t%d\t%d\t%d\t%s", t.Name, t.Queued, t.InFlight, t.Displaced, t.Promotions, cmp.Or(fair[t.Name], "-\t-"))
	}
}

// whyNot puts the missing conditions in brackets.
func whyNot(lacks string) string {
	if lacks == "" {
		return ""
	}
	return " (" + lacks + ")"
}
