package chart

import (
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/kubeenv"
)

func TestMain(m *testing.M) {
	os.Exit(kubeenv.Run(func() int { return binaries.Run(m, binaries.EPP, binaries.Weir) }))
}
