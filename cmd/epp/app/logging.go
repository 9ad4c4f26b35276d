package app

import (
	"io"
	"strings"

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

// newLogger logs to w in the given encoding, with the lines of logr's V(0) to V(verbosity), and warnings as such.
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
	logger := zap.New(warningCore{core})
	return zapr.NewLogger(logger), func() { _ = logger.Sync() }
}

// warningPrefix begins the message of a warning in code that knows logr only, which has no level for them.
const warningPrefix = "WARNING: "

// warningCore gives warnings their level. Messages are constants of the program or name keys of its configuration, so
// that no client can raise the level of a line.
type warningCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c warningCore) With(fields []zapcore.Field) zapcore.Core {
	return warningCore{c.Core.With(fields)}
}

// Check implements zapcore.Core.
func (c warningCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if rest, is := strings.CutPrefix(entry.Message, warningPrefix); is && entry.Level == zapcore.InfoLevel {
		entry.Level, entry.Message = zapcore.WarnLevel, rest
	}
	return c.Core.Check(entry, checked)
}
