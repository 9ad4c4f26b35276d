//go:build e2evllm

package e2evllm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// clientTokens is the number of tokens that the script below requests.
const clientTokens = 8

// call is the result of one call of a real client.
type call struct {
	Text     string
	Tokens   int
	Attempts []struct{ Status int }

	Exception, Message string
}

// clientsScene checks that the real clients get their answers from the real engine, streamed or not.
func clientsScene(t *testing.T, e *engine) section {
	interpreter := os.Getenv("CLIENTS_PYTHON")
	if interpreter == "" {
		t.Fatal("no Python with the openai and anthropic clients: run `make openai`, and set CLIENTS_PYTHON=$(hack/clients.sh)")
	}
	set := before(t, e, "profile: wfq\nrequestQueueController: { "+bounds+" }\n")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, "../integration/testdata/clients.py", set.weir.URL(), "everything", "model="+model)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("the clients: %v\n%s", err, &complaints)
	}
	var calls map[string]call
	if err := json.Unmarshal(said, &calls); err != nil {
		t.Fatalf("the clients: %v: %s", err, said)
	}
	if len(calls) != 8 {
		t.Errorf("%d calls, want 8", len(calls))
	}
	var text strings.Builder
	text.WriteString(`The Python clients of OpenAI and Anthropic, as they are, with Envoy's address for a base URL; each asks for 8 tokens.

| call | status | attempts | tokens, as the client counts them |
|---|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		c := calls[name]
		if c.Exception != "" || c.Text == "" || c.Tokens != clientTokens || len(c.Attempts) != 1 || c.Attempts[0].Status != http.StatusOK {
			t.Errorf("%s: %+v, want a text of %d tokens at the first attempt", name, c, clientTokens)
			continue
		}
		fmt.Fprintf(&text, "| `%s` | %d | %d | %d |\n", name, c.Attempts[0].Status, len(c.Attempts), c.Tokens)
	}
	return section{"Real clients", text.String()}
}
