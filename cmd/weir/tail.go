package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/status"
)

const tailAbout = `Print a line for each request that ends from now on, until ^C. A reader that falls 1,024 requests behind is dropped:
select fewer requests by --flow or --outcome.

It goes on while one replica answers, and says which one does not.

Exit code 0: by ^C, or after --lines. Else 1: dropped, or all replicas have ended. 2: one was never reached, or wrong arguments.
`

// longestLine bounds a line of the tail, in bytes.
const longestLine = 64 << 10

// runTail is `weir tail`.
func runTail(args []string, stdout, stderr io.Writer) int {
	set := flagSet("weir tail")
	addresses := set.StringSlice("address", []string{"localhost:9004"}, "`addresses` of the debug ports of all replicas (--debug-port), by comma")
	flow := set.String("flow", "", "only requests of the flow with this `name`")
	outcomes := set.StringSlice("outcome", nil, "only requests with these `outcomes` of weir_requests_total, separated by commas")
	output := set.StringP("output", "o", "text", "`format`: text or json")
	lines := set.Int("lines", 0, "`number` of lines after which weir tail ends; 0: never")
	check := func() error {
		if !slices.Contains([]string{"text", "json"}, *output) {
			return fmt.Errorf("--output: %q: must be text or json", *output)
		}
		if *lines < 0 {
			return fmt.Errorf("--lines: %d: must be at least 0", *lines)
		}
		return checkAddresses(*addresses)
	}
	if code, ok := readFlags(set, tailAbout, args, check, stdout, stderr); !ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	p := &tailPrinter{out: stdout, err: stderr, json: *output == "json", most: *lines, enough: enough}
	failures := make([]error, len(*addresses))
	var all sync.WaitGroup
	for i, address := range *addresses {
		all.Go(func() {
			if err := p.follow(ctx, address, *flow, *outcomes); err != nil && ctx.Err() == nil {
				failures[i] = err
				p.tell(address + ": " + err.Error()) // at once: the other replicas go on
			}
		})
	}
	if *flow != "" {
		all.Go(func() { p.tell(unknownFlow(ctx, *addresses, *flow)) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil && ctx.Err() == nil {
		if unreached := (&status.UnreachableError{}); errors.As(err, &unreached) {
			return 2
		}
		return 1
	}
	return 0
}

// tailPrinter prints the lines of all replicas.
type tailPrinter struct {
	json   bool
	most   int // 0: no limit
	enough func()

	mu       sync.Mutex // guards the rest
	out, err io.Writer
	n        int
}

// tell writes a message beside the lines; none if it is "".
func (p *tailPrinter) tell(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != "" {
		_, _ = fmt.Fprintf(p.err, "weir tail: %s\n", printable.Text(text))
	}
}

var errDropped = errors.New("the epp dropped this reader, which was too slow")

// follow prints the lines of one replica until it ends.
func (p *tailPrinter) follow(ctx context.Context, address, flow string, outcomes []string) error {
	body, err := status.Tail(ctx, address, flow, outcomes)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var e status.Ended
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("a line is not a request: %w", err)
		}
		if e.Dropped != "" {
			return errDropped
		}
		if err := p.print(&e, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	return errors.New("the epp has ended")
}

func (p *tailPrinter) print(e *status.Ended, line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most > 0 && p.n >= p.most {
		return nil
	}
	text := string(printable.JSON(line))
	if !p.json {
		text = e.Line()
	}
	if _, err := fmt.Fprintln(p.out, text); err != nil {
		return err
	}
	if p.n++; p.n == p.most {
		p.enough()
	}
	return nil
}
