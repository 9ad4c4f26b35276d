package leader

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Limits of a record. Strangers may write one.
const (
	// MaxRecord is the length of a record, in bytes. The apiserver takes 256 KiB of annotations.
	MaxRecord = 64 << 10
	// MaxInFlight is the largest count.
	MaxInFlight = 1_000_000
	// MaxTokens is the largest number of tokens.
	MaxTokens  = 1 << 40
	maxKey     = 128 // bytes of an endpoint's key
	maxBoot    = 64  // bytes of a boot ID
	maxEarlier = 4   // earlier processes in one record
)

// InFlight is the requests in flight of a process.
type InFlight struct {
	// Total is the number of requests, including those at endpoints that left the pool.
	Total int `json:"total"`
	// ByEndpoint has the numbers by the endpoint's key, without zeros; nil: there are too many to list, and Total must
	// be spread.
	ByEndpoint map[string]int `json:"endpoints,omitempty"`
	// Tokens and TokensByEndpoint are these requests' tokens of the stock. They are missing if tokens are not bounded,
	// or if an earlier version of Weir wrote the record; then only the requests count. A total without a list must be
	// spread, by the requests if those are listed.
	Tokens           int64            `json:"tokens,omitempty"`
	TokensByEndpoint map[string]int64 `json:"endpointTokens,omitempty"`
}

// unlisted returns the totals alone.
func (f InFlight) unlisted() InFlight { return InFlight{Total: f.Total, Tokens: f.Tokens} }

// Record is a replica's statement about itself in its Lease.
type Record struct {
	// Boot is the boot ID of the process that writes it.
	Boot string `json:"boot"`
	// Time is when, by its clock; for people.
	Time time.Time `json:"time"`
	// Draining is true if the process is stopping; for people.
	Draining bool `json:"draining,omitempty"`
	InFlight
	// Earlier has the requests that earlier processes of this replica left behind.
	Earlier []Earlier `json:"earlier,omitempty"`
}

// Earlier is the last record of a process that has ended.
type Earlier struct {
	Boot string `json:"boot"`
	// Age is its age when the containing record was written, in seconds.
	Age int `json:"age"`
	InFlight
}

// encode returns the record as text of at most MaxRecord bytes. A longer record loses the tokens by endpoint, then the
// counts by endpoint, then the earlier processes.
func (r Record) encode() string {
	r.Earlier = r.Earlier[:min(len(r.Earlier), maxEarlier)]
	for {
		text, err := json.Marshal(r)
		if err != nil {
			panic(fmt.Sprintf("leader: encoding a record: %v", err)) // its types have no other values
		}
		switch {
		case len(text) <= MaxRecord:
			return string(text)
		case r.listsTokens():
			r.TokensByEndpoint = nil
			r.Earlier = slices.Clone(r.Earlier)
			for i := range r.Earlier {
				r.Earlier[i].TokensByEndpoint = nil
			}
		case r.ByEndpoint != nil && !r.listsEarlier():
			r.InFlight = r.unlisted()
		case r.listsEarlier():
			earlier := make([]Earlier, len(r.Earlier))
			for i, e := range r.Earlier {
				e.InFlight = e.unlisted()
				earlier[i] = e
			}
			r.Earlier = earlier
		default:
			r.Earlier = nil
		}
	}
}

func (r *Record) listsEarlier() bool {
	for _, e := range r.Earlier {
		if e.ByEndpoint != nil {
			return true
		}
	}
	return false
}

func (r *Record) listsTokens() bool {
	return r.TokensByEndpoint != nil || slices.ContainsFunc(r.Earlier, func(e Earlier) bool { return e.TokensByEndpoint != nil })
}

// decode returns the record of a text. The error names the field.
func decode(text string) (*Record, error) {
	if len(text) > MaxRecord {
		return nil, fmt.Errorf("%d bytes: must be at most %d", len(text), MaxRecord)
	}
	r := &Record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%.200s", err.Error()) // it may quote a number as long as the record
	}
	if err := r.check("", r.Boot); err != nil {
		return nil, err
	}
	if len(r.Earlier) > maxEarlier {
		return nil, fmt.Errorf("earlier: %d processes: must be at most %d", len(r.Earlier), maxEarlier)
	}
	for i, e := range r.Earlier {
		at := fmt.Sprintf("earlier[%d].", i)
		if err := e.check(at, e.Boot); err != nil {
			return nil, err
		}
		if e.Age < 0 || e.Age > int(MaxTakeoverWindow/time.Second) {
			return nil, fmt.Errorf("%sage: %d: must be from 0 to %d", at, e.Age, int(MaxTakeoverWindow/time.Second))
		}
	}
	return r, nil
}

func (f InFlight) check(at, boot string) error {
	if boot == "" || len(boot) > maxBoot {
		return fmt.Errorf("%sboot: %d bytes: must be from 1 to %d", at, len(boot), maxBoot)
	}
	if f.Total < 0 || f.Total > MaxInFlight {
		return fmt.Errorf("%stotal: %d: must be from 0 to %d", at, f.Total, MaxInFlight)
	}
	if f.Tokens < 0 || f.Tokens > MaxTokens {
		return fmt.Errorf("%stokens: %d: must be from 0 to %d", at, f.Tokens, int64(MaxTokens))
	}
	if err := checkList(at+"endpoints", f.ByEndpoint, MaxInFlight); err != nil {
		return err
	}
	return checkList(at+"endpointTokens", f.TokensByEndpoint, MaxTokens)
}

// checkList checks a record's list by endpoint.
func checkList[N int | int64](at string, list map[string]N, most N) error {
	for key, n := range list {
		if len(key) > maxKey {
			return fmt.Errorf("%s: a key of %d bytes: must be at most %d", at, len(key), maxKey)
		}
		if n < 0 || n > most {
			return fmt.Errorf("%s: %q: %d: must be from 0 to %d", at, key, n, most)
		}
	}
	return nil
}
