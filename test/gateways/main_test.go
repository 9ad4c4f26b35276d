package gateways

import (
	"fmt"
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
)

func TestMain(m *testing.M) {
	if _, err := envoyrun.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir))
}
