package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/status"
)

const statusAbout = `Print the state of an epp once: the pool, its tiers, engines and flows, and its last rejections.

Exit code 0: healthy. 1: degraded, with the reasons on the first lines. 2: no replica can be reached, or wrong arguments.
`

// secondReading is the time between the two readings for rates.
const secondReading = time.Second

// statusFlags adds the flags that choose replicas and rows.
func statusFlags(set *pflag.FlagSet, q *status.Query) (addresses *[]string) {
	addresses = set.StringSlice("address", []string{"localhost:9004"}, "`addresses` of the debug ports of all replicas (--debug-port), separated by commas")
	set.IntVar(&q.Engines, "engines", q.Engines, fmt.Sprintf("largest number of `rows` of engines, 0 to %d", status.MostRows))
	set.IntVar(&q.Flows, "flows", q.Flows, fmt.Sprintf("largest number of `rows` of flows, 0 to %d", status.MostRows))
	set.IntVar(&q.Rejections, "rejections", q.Rejections, fmt.Sprintf("largest number of `rows` of rejections, 0 to %d", status.MostRows))
	set.StringVar(&q.Engine, "engine", q.Engine, "only engines whose address contains this `part`")
	set.StringVar(&q.Flow, "flow", q.Flow, "only flows whose name contains this `part`")
	set.StringVar(&q.SortEngines, "sort-engines", q.SortEngines, "`order` of engines: "+strings.Join(status.EngineOrders, ", "))
	set.StringVar(&q.SortFlows, "sort-flows", q.SortFlows, "`order` of flows: "+strings.Join(status.FlowOrders, ", "))
	return addresses
}

// checkStatusFlags returns the problems of the flags.
func checkStatusFlags(q *status.Query, addresses []string) error {
	if err := checkAddresses(addresses); err != nil {
		return err
	}
	if _, err := status.ParseQuery(q.Values()); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("--%s", first)
	}
	return nil
}

// checkAddresses checks addresses, and brings them to the form HOST:PORT.
func checkAddresses(addresses []string) error {
	if len(addresses) == 0 {
		return errors.New("--address: must have at least one address")
	}
	for i, address := range addresses {
		address = strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/") // as a browser has it
		addresses[i] = address
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return fmt.Errorf("--address: %q: must be HOST:PORT", address)
		}
	}
	return nil
}

// runStatus is `weir status`.
func runStatus(args []string, stdout, stderr io.Writer) int {
	set, q := flagSet("weir status"), status.DefaultQuery()
	q.Flows = 20
	addresses := statusFlags(set, &q)
	output := set.StringP("output", "o", "text", "`format`: text or json")
	check := func() error {
		if !slices.Contains([]string{"text", "json"}, *output) {
			return fmt.Errorf("--output: %q: must be text or json", *output)
		}
		return checkStatusFlags(&q, *addresses)
	}
	if code, ok := readFlags(set, statusAbout, args, check, stdout, stderr); !ok {
		return code
	}
	answers := readStatus(context.Background(), *addresses, &q)
	show := status.Print
	if *output == "json" {
		show = printStatusJSON
	}
	if err := show(stdout, answers); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir status: %v\n", err)
		return int(status.Degraded)
	}
	if rows, reached := flowsOf(answers); q.Flow != "" && reached && len(rows) == 0 {
		if text := unknownFlow(context.Background(), *addresses, q.Flow); text != "" {
			_, _ = fmt.Fprintf(stderr, "weir status: %s\n", text)
		}
	}
	verdict, _ := status.Judge(answers)
	return int(verdict)
}

// readStatus reads the documents of all replicas, and again if one has no rates yet.
func readStatus(ctx context.Context, addresses []string, q *status.Query) []status.Answer {
	answers := status.Fetch(ctx, addresses, q)
	if slices.ContainsFunc(answers, func(a status.Answer) bool { return a.Document != nil && a.Document.WindowSeconds == 0 }) {
		time.Sleep(secondReading)
		answers = status.Fetch(ctx, addresses, q)
	}
	return answers
}

// statusJSON is the output of `weir status -o json`.
type statusJSON struct {
	Schema   int             `json:"schema"`
	Verdict  string          `json:"verdict"`
	Reasons  []string        `json:"reasons"`
	Replicas []replicaStatus `json:"replicas"`
}

// replicaStatus is the state of one replica, or the error of reading it.
type replicaStatus struct {
	Address string           `json:"address"`
	Error   string           `json:"error,omitempty"`
	Status  *status.Document `json:"status,omitempty"`
}

func printStatusJSON(out io.Writer, answers []status.Answer) error {
	verdict, reasons := status.Judge(answers)
	all := statusJSON{Schema: status.Schema, Verdict: verdict.String(), Reasons: append([]string{}, reasons...)}
	for _, a := range answers {
		one := replicaStatus{Address: a.Address, Status: a.Document}
		if a.Err != nil {
			one.Error = a.Err.Error()
		}
		all.Replicas = append(all.Replicas, one)
	}
	return printable.WriteJSON(out, all)
}
