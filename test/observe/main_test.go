package observe

import (
	"fmt"
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/kubeenv"
)

func TestMain(m *testing.M) {
	if _, err := envoyrun.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(kubeenv.Run(func() int {
		defer func() { shared.stop() }()
		return binaries.Run(m, binaries.EPP)
	}))
}
