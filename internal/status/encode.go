package status

import (
	"encoding/json"
	"fmt"

	"github.com/weir-epp/weir/internal/printable"
)

// MaxBytes is the largest size of an encoded document.
const MaxBytes = 256 << 10

// Encode returns the document as JSON of at most MaxBytes. Until it fits, the largest table loses the last quarter of
// its rows; LeftOut counts them.
func (d *Document) Encode() ([]byte, error) {
	for {
		text, err := json.Marshal(d)
		text = printable.JSON(text)
		if err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
		if len(text) < MaxBytes {
			return append(text, '\n'), nil
		}
		if !d.Shorten() {
			return nil, fmt.Errorf("status: a document without rows has %d bytes, more than %d", len(text), MaxBytes)
		}
	}
}

// Shorten omits the last quarter of the largest table's rows, and reports whether there was a row.
func (d *Document) Shorten() bool {
	engines, flows, rejections := sizeOf(d.Engines), sizeOf(d.Flows), sizeOf(d.Rejections)
	switch most := max(engines, flows, rejections); {
	case len(d.Engines)+len(d.Flows)+len(d.Rejections) == 0:
		return false
	case most == flows:
		d.Flows = cut(d.Flows, len(d.Flows)*3/4, &d.LeftOut.Flows)
	case most == engines:
		d.Engines = cut(d.Engines, len(d.Engines)*3/4, &d.LeftOut.Engines)
	default:
		d.Rejections = cut(d.Rejections, len(d.Rejections)*3/4, &d.LeftOut.Rejections)
	}
	return true
}

func sizeOf[R any](rows []R) int {
	text, _ := json.Marshal(rows) // the whole was encoded before
	return len(text)
}
