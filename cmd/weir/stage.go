package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/scene"
)

// onStage runs play in a scene that ends with it, even at Ctrl-C. After a success it removes the scene's logs;
// otherwise it keeps them and prints their directory to stderr. It returns the command's exit code. A second Ctrl-C
// ends weir at once.
func onStage(name string, stderr io.Writer, play func(*scene.Scene) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	if _, err := envoyrun.Find(); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir %s: %v\n", name, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "weir %s: %v\n", name, err)
		return 1
	}
	s := scene.New(ctx, dir)
	err = play(s)
	err = errors.Join(err, s.Close())
	if ctx.Err() != nil {
		_ = os.RemoveAll(dir)
		if err == nil {
			return 0
		}
		_, _ = fmt.Fprintf(stderr, "\nweir %s: interrupted\n", name)
		return 1
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "\nweir %s: %v\nThe logs are kept in %s\n", name, err, dir)
		return 1
	}
	if err := os.RemoveAll(dir); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir %s: %v\n", name, err)
		return 1
	}
	return 0
}
