package dispatch

import "time"

// Statistics are the queue's statistics in the words of MindRouter, also as JSON.
type Statistics struct {
	Queue QueueStatistics `json:"queue"`
	// FairShare is nil unless the discipline is fairshare.
	FairShare *ShareStatistics `json:"fair_share,omitempty"`
}

// QueueStatistics are about the waiting requests.
type QueueStatistics struct {
	// Total is their number. ByUser has the number by flow for some flows, roughly in order of expiry; ByModel has it
	// for each model with its own label in metrics.
	Total   int            `json:"total"`
	ByUser  map[string]int `json:"by_user"`
	ByModel map[string]int `json:"by_model"`
	// AverageWait is the waiting requests' mean time in the queue, in seconds.
	AverageWait float64 `json:"average_wait_seconds"`
}

// ShareStatistics are about fair shares.
type ShareStatistics struct {
	// TotalUsers is the number of known flows. UserStats has some of them, active flows first.
	TotalUsers int `json:"total_users"`
	// Recent is the use of all flows in the window, in units of cost, and Window the window's length in seconds.
	Recent    int64       `json:"global_recent_tokens"`
	Window    float64     `json:"fairness_window_seconds"`
	UserStats []UserStats `json:"user_stats"`
}

// UserStats is the state of one flow.
type UserStats struct {
	User string `json:"user_id"`
	Tier string `json:"tier"`
	// Class is its class within the tier; empty without configured classes.
	Class  string  `json:"class,omitempty"`
	Weight float64 `json:"weight"`
	// Deficit is the service owed to it, in units of cost; those of the active flows of a class add up to zero.
	// BurstCredits and Recent are in units of cost, too.
	Deficit      int64 `json:"deficit"`
	BurstCredits int64 `json:"burst_credits"`
	Recent       int64 `json:"recent_tokens"`
	// Factor lowers its priority; 1 if nothing does.
	Factor float64 `json:"deprioritization_factor"`
	// Active and Waiting are numbers of requests: in flight, and in the queue.
	Active  int `json:"active_requests"`
	Waiting int `json:"waiting_requests"`
}

// Statistics returns the queue's statistics, of up to limit flows and without ByModel. It visits as many flows.
func (m *Machine) Statistics(now time.Time, limit int) (s Statistics) {
	s.Queue = QueueStatistics{
		Total: m.queue.Len(), ByUser: map[string]int{}, ByModel: map[string]int{}, AverageWait: m.queue.AverageWait(now).Seconds(),
	}
	for _, v := range m.queue.View(limit) {
		s.Queue.ByUser[v.Flow] += v.Queued
	}
	shares, ok := m.queue.Shares(now, limit)
	if !ok {
		return s
	}
	names := m.tierNames()
	s.FairShare = &ShareStatistics{
		TotalUsers: shares.Known, Recent: shares.Recent, Window: shares.Window.Seconds(), UserStats: []UserStats{},
	}
	for _, u := range shares.Users {
		s.FairShare.UserStats = append(s.FairShare.UserStats, UserStats{
			User: u.Flow, Tier: names[u.Tier], Class: u.Class, Weight: float64(u.Weight) / 1e6, Deficit: u.Deficit,
			BurstCredits: u.BurstCredits, Recent: u.Recent, Factor: float64(u.Factor) / 1e6, Active: u.InFlight, Waiting: u.Queued,
		})
	}
	return s
}
