package spelling

import (
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	names := []string{"--watermark-per-backend", "--grpc-port", "--metrics-port", "--metrics-endpoint-auth", "--v", "queueTTL"}
	for written, want := range map[string]string{
		"--watermark":             "--watermark-per-backend", // the only flag with this prefix
		"--metrics":               "",                        // two flags have it
		"--grcp-port":             "--grpc-port",
		"--grpcport":              "--grpc-port",
		"--GRPC_PORT":             "--grpc-port",
		"--grpc-pot":              "--grpc-port", // a letter missing
		"--grpc-poort":            "--grpc-port", // a letter too many
		"queue_ttl":               "queueTTL",
		"que":                     "queueTTL",
		"qu":                      "",
		"":                        "",
		"--something-else":        "",
		strings.Repeat("--v", 50): "",
	} {
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got := Suggest(written, names); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}

// Either lists up to three names.
func TestEither(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, " (did you mean a?)": {"a"}, " (did you mean a or b?)": {"a", "b"}, " (did you mean a, b or c?)": {"a", "b", "c"},
	} {
		if got := Either(names); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	if got := Either([]string{"a", "b", "c", "d"}); got != "" {
		t.Errorf("four: %q", got)
	}
}
