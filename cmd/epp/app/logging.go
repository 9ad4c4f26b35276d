package app

import (
	"io"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weir-epp/weir/internal/printable"
)

// The log's encodings.
const (
	encoderJSON    = "json"
	encoderConsole = "console"
)

// maxVerbosity is the largest --v: zap stores levels in a signed byte.
const maxVerbosity = 100

// newLogger returns a logger to w with the given encoding, which escapes terminal commands in clients' names. It writes
// logr's V(0) to V(verbosity), and warnings as such.
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
	sink := zapcore.Lock(zapcore.AddSync(printable.Writer(w)))
	core := zapcore.NewCore(encode(layout), sink, zapcore.Level(-verbosity))
	logger := zap.New(warningCore{core})
	return zapr.NewLogger(logger), func() { _ = logger.Sync() }
}

// warningPrefix begins the message of a warning from code that uses logr, which has no level for warnings.
const warningPrefix = "WARNING: "

// warningCore sets the level of warnings. Messages are constants of the program or name configuration keys, so no
// client can raise the level of a line.
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
