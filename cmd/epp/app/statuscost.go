package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/metering"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// costLines writes the unit of charges, the discipline, and the source of usage.
func (a *App) costLines(d *config.Document, now time.Time, line func(format string, args ...any)) {
	line("cost\t%s\tshared by %s", d.Cost, d.Flows.Discipline)
	if d.Cost == string(extproc.CostRequests) {
		line("usage\t%s\tnot needed, as nothing is charged in tokens", d.Usage)
		return
	}
	seen := a.pool.server.UsageSeen()
	line("usage\t%s\t%s", d.Usage, lastUsage(seen.Last, now))
	line("without\t%d\tof the last %s; they are charged by their estimates and times", seen.Unknown, counted(seen.Answers, "answer"))
}

// lastUsage writes when usage last came from each source.
func lastUsage(last map[metering.Way]time.Time, now time.Time) string {
	var ways []string
	for way, at := range last {
		ways = append(ways, fmt.Sprintf("by %s %v ago", way, max(0, now.Sub(at)).Round(time.Second)))
	}
	if ways == nil {
		return "none has come"
	}
	slices.Sort(ways)
	return "last " + strings.Join(ways, ", ")
}

// inTokens shows the tokens at an endpoint, and their bound, if any.
func inTokens(s *scheduling.Share) string {
	if s.TokenBound == 0 {
		return "-\t-"
	}
	return fmt.Sprintf("%d\t%d", s.Tokens+s.ForeignTokens, s.TokenBound)
}
