package app

import (
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The log's encodings.
const (
	encoderJSON    = "json"
	encoderConsole = "console"
)

// maxVerbosity is the largest --v: zap has a signed byte for its levels.
const maxVerbosity = 100

// newLogger logs to w in the given encoding, with the lines of logr's V(0) to V(verbosity).
func newLogger(w io.Writer, encoding string, verbosity int) (log logr.Logger, flush func()) {
	layout := zap.NewProductionEncoderConfig()
	layout.TimeKey = "time"
	layout.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	layout.EncodeDuration = zapcore.StringDurationEncoder
	encode := zapcore.NewJSONEncoder
	if encoding == encoderConsole {
		layout.EncodeLevel = zapcore.CapitalLevelEncoder
		encode = zapcore.NewConsoleEncoder
	}
	sink := zapcore.Lock(zapcore.AddSync(w))
	core := zapcore.NewCore(encode(layout), sink, zapcore.Level(-verbosity))
	logger := zap.New(core)
	return zapr.NewLogger(logger), func() { _ = logger.Sync() }
}
