package app

import (
	"strings"
	"testing"
)

// Sizes are bytes, in Kubernetes' format and in that of other charts.
func TestSize(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "1048576": 1 << 20, "10Mi": 10 << 20, "10MiB": 10 << 20, "25MB": 25_000_000, "1Gi": 1 << 30, "-1": -1,
	} {
		got := -2
		if err := (size{&got}).Set(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "ten", "1.5", "10 Mi", "10MiBB", "1e30", "99999999999Gi"} {
		before := 7
		if err := (size{&before}).Set(text); err == nil || before != 7 {
			t.Errorf("%q is accepted as %d", text, before)
		}
	}
	err := newFlags().parse([]string{"--grpc-max-recv-msg-size=ten"})
	if err == nil || !strings.Contains(err.Error(), `--grpc-max-recv-msg-size: "ten": must be a number of bytes, or one with a unit`) {
		t.Errorf("got %v", err)
	}
}
