package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/internal/top"
)

const topAbout = `Show the state of an epp and refresh it: the pool, its tiers, engines and flows, and its last rejections. The last line lists
the keys, which also change the rows that the flags select.

Exit code 0: by q or ^C. 2: no replica could be reached, at the start or for as long as --patience, or wrong arguments.
`

// runTop is `weir top`.
func runTop(args []string, stdout, stderr io.Writer) int {
	set, q := flagSet("weir top"), status.DefaultQuery()
	addresses := statusFlags(set, &q)
	every := set.Duration("every", 2*time.Second, "`time` between two readings")
	patience := set.Duration("patience", 15*time.Second, "`time` without any answer after which weir top ends")
	check := func() error {
		if *every < 100*time.Millisecond {
			return fmt.Errorf("--every: %v: must be at least 100ms", *every)
		}
		if *patience < 0 {
			return fmt.Errorf("--patience: %v: must be at least 0", *patience)
		}
		return checkStatusFlags(&q, *addresses)
	}
	if code, ok := readFlags(set, topAbout, args, check, stdout, stderr); !ok {
		return code
	}
	screen, ok := stdout.(*os.File)
	if !ok || !term.IsTerminal(int(screen.Fd())) {
		_, _ = fmt.Fprintln(stderr, "weir top: standard output is no terminal: weir status prints the same once")
		return 2
	}
	if err := showTop(screen, *addresses, q, *every, *patience); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir top: %v\n", err)
		return 2
	}
	return 0
}

// showTop shows the screen until the user ends it. It restores the terminal.
func showTop(screen *os.File, addresses []string, q status.Query, every, patience time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGHUP, syscall.SIGTERM)
	defer stop()
	first := status.Fetch(ctx, addresses, &q)
	if verdict, reasons := status.Judge(first); verdict == status.Unreachable {
		return errors.New(reasons[0])
	}
	m := top.New(top.Options{
		Addresses: addresses, Every: every, Patience: patience, Colour: os.Getenv("NO_COLOR") == "",
		Read: func(q *status.Query) []status.Answer { return status.Fetch(ctx, addresses, q) },
	}, q, first)
	last, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(screen)).Run()
	if err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return err
	}
	if ended, ok := last.(top.Model); ok {
		return ended.Err()
	}
	return nil
}
