package loadgen

import (
	"os"
	"testing"
)

func TestRenderTmp(t *testing.T) {
	f := syntheticFigure()
	for _, n := range []string{"/tmp/lg.png", "/tmp/lg.svg"} {
		if err := f.Save(n); err != nil {
			t.Fatal(err)
		}
	}
	_ = WriteTable(os.Stdout, Summarise("without", syntheticReport(false)), Summarise("with", syntheticReport(true)))
}
