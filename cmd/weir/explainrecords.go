package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/request"
)

// mostRecord is the longest line of a file of decision records, in bytes.
const mostRecord = 1 << 20

// areRecords reports whether a file has decision records: lines of JSON.
func areRecords(name string) (bool, error) {
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	var first [1]byte
	if _, err := io.ReadFull(file, first[:]); err != nil {
		return false, nil //nolint:nilerr // an empty file is not a recording; reading one reports that
	}
	return first[0] == '{', nil
}

// explainRecords explains the requests of a file of decision records.
func (o *explainOptions) explainRecords(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	all, torn, err := o.readRecords(file)
	if err != nil {
		return nil, err
	}
	if len(torn) > 0 {
		o.warn(fmt.Sprintf("%d lines are incomplete and left out; the last one is line %d", len(torn), torn[len(torn)-1]))
	}
	if len(all) == 0 && o.request != "" {
		return nil, fmt.Errorf("request %q: no record has this ID or number: with decisions.sample below 1 most requests have no record", o.request)
	}
	if o.request == "" {
		all = o.slowestRecords(all)
	}
	var out bytes.Buffer
	for i := range all {
		switch {
		case o.output == "json":
			out.Write(append(all[i].JSON(), '\n'))
			continue
		case i > 0:
			out.WriteByte('\n')
		}
		out.WriteString(all[i].Text())
	}
	return out.Bytes(), nil
}

// readRecords reads the records chosen by the options. torn are the numbers of incomplete lines: a killed writer leaves
// one, at the end or, if another writer continued, within. If no line is complete, the file has no records.
func (o *explainOptions) readRecords(in io.Reader) (all []decision.Record, torn []int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostRecord)
	var first error
	n := 1
	for ; lines.Scan(); n++ {
		var r decision.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			torn = append(torn, n)
			first = cmp.Or(first, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if o.wants(&r) {
			all = append(all, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("line %d: %w", n, err)
	}
	if len(torn) == n-1 {
		return nil, nil, first
	}
	return all, torn, nil
}

// wants reports whether a record belongs to --request or --flow.
func (o *explainOptions) wants(r *decision.Record) bool {
	if o.request != "" {
		return r.ID == o.request || r.Number > 0 && strconv.FormatUint(r.Number, 10) == o.request
	}
	return o.flow == "" || r.Flow == o.flow || r.Flow == request.HashedFlowName(o.flow)
}

// slowestRecords returns the records of the longest waits among those chosen by --last and --until.
func (o *explainOptions) slowestRecords(all []decision.Record) []decision.Record {
	var latest time.Time
	for i := range all {
		if until := decidedAt(&all[i]); until.After(latest) {
			latest = until
		}
	}
	begin, end := o.window(time.Time{}, latest)
	all = slices.DeleteFunc(all, func(r decision.Record) bool { return decidedAt(&r).Before(begin) || r.Arrived.After(end) })
	slices.SortStableFunc(all, func(a, b decision.Record) int { return cmp.Compare(b.Waited, a.Waited) })
	return all[:min(o.slowest, len(all))]
}

// decidedAt returns the time of a request's decision.
func decidedAt(r *decision.Record) time.Time {
	return r.Arrived.Add(time.Duration(r.Waited * float64(time.Second)))
}
