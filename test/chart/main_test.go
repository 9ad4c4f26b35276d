package chart

import (
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir)) }
