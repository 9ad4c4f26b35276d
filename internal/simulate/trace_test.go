package simulate

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func traceOf(name, text string, o TraceOptions) *Trace {
	if o.Speed == 0 {
		o.Speed, o.Block = 1, 512
	}
	return OpenTrace(name, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, o)
}

// rest returns all requests left in a source.
func rest(s Source) (all []Request, err error) {
	for {
		r, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
}

const mooncake = `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 600, "output_length": 7, "hash_ids": [0, 3]}
`

func TestMooncake(t *testing.T) {
	got, err := rest(traceOf("x.jsonl", mooncake, TraceOptions{Speed: 2, Block: 512, Flow: "f", Repeat: 2}))
	if err != nil || len(got) != 4 {
		t.Fatalf("%d requests: %v", len(got), err)
	}
	for i, at := range []time.Duration{0, 1500, 1500, 3000} {
		if got[i].At != at*time.Millisecond || got[i].Flow != "f" {
			t.Errorf("request %d: %+v, want it at %d ms", i, got[i], at)
		}
	}
	if got[0].Blocks[0] != got[1].Blocks[0] || got[0].Blocks[1] == got[1].Blocks[1] || got[0].Blocks[0] == got[2].Blocks[0] {
		t.Errorf("blocks %v, want a shared first one in each of the two rounds: %v", got[0].Blocks, got)
	}
	if got[1].Prompt != 600 || got[1].Output != 7 {
		t.Errorf("%+v", got[1])
	}
	if got, err = rest(traceOf("x.jsonl", mooncake, TraceOptions{Speed: 1, Block: 512, Repeat: 5, Most: 3})); len(got) != 3 || err != nil {
		t.Errorf("%d requests, want 3: %v", len(got), err)
	}
}

func TestLinesAndColumns(t *testing.T) {
	const lines = `{"arrival": 5, "flow": "a", "input": 10, "output": 3}

{"arrival": 5.25, "tier": "t", "input": 20, "output": 4, "max_output": 9}
`
	const columns = "arrival,flow,output,input,tier,max_output\n5,a,3,10,,\n5.25,,4,20,t,9\n"
	for name, text := range map[string]string{"x.jsonl": lines, "x.csv": columns} {
		got, err := rest(traceOf(name, text, TraceOptions{Speed: 1, Block: 512, Flow: "f"}))
		if err != nil || len(got) != 2 {
			t.Fatalf("%s: %d requests: %v", name, len(got), err)
		}
		if r := got[0]; r.At != 0 || r.Flow != "a" || r.Prompt != 10 || r.Output != 3 {
			t.Errorf("%s: %+v", name, r)
		}
		if r := got[1]; r.At != 250*time.Millisecond || r.Flow != "f" || r.Tier != "t" || r.Prompt != 20 || r.MaxOutput != 9 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// An unreadable line ends the trace, with its number and all its mistakes.
func TestTraceErrors(t *testing.T) {
	const good = `{"timestamp": 7, "input_length": 1100, "output_length": 5}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"x.jsonl", "", "x.jsonl: has no requests"},
		{"x.jsonl", good + "oops\n", "x.jsonl: line 2: invalid character 'o' looking for beginning of value"},
		{"x.jsonl", good + "\n" + `{"timestamp": 8`, "x.jsonl: line 3: not JSON: it ends within a value"},
		{"x.jsonl", good + `{"timestamp": 8, "length": 3}`, `x.jsonl: line 2: unknown field "length"`},
		{"x.jsonl", good + `{"timestamp": "8"}`, "x.jsonl: line 2: timestamp: string: must be a number"},
		{"x.jsonl", good + `{"timestamp": 8, "input_length": 1.5}`, "x.jsonl: line 2: input_length: number 1.5: must be a whole number"},
		{"x.jsonl", good + `{"timestamp": 8, "hash_ids": [-1]}`, "x.jsonl: line 2: hash_ids: number -1: must be a whole number"},
		{"x.jsonl", good + `[]`, "x.jsonl: line 2: array: must be an object"},
		{"x.jsonl", good + good[:len(good)-1] + "{}", "x.jsonl: line 2: more than one JSON value"},
		{"x.jsonl", good + `{"timestamp": 6, "input_length": 1, "output_length": 1}`, "x.jsonl: line 2: timestamp: before that of the line above"},
		{"x.jsonl", `{}`, "x.jsonl: line 1: timestamp: missing; input_length: missing; output_length: missing"},
		{
			"x.jsonl", `{"timestamp": -1, "arrival": 1, "input_length": 0, "output_length": 1, "output": 1, "max_output": -1}`,
			"line 1: timestamp: given twice (also as arrival); input_length: 0: must be from 1 to 4194304; output_length: given twice (also as output); max_output: -1: must be from 0 to 4194304",
		},
		{"x.jsonl", `{"timestamp": 1e300, "input": 1, "output": 1}`, "line 1: timestamp: must be from 0 s to 3153600000 s"},
		{"x.jsonl", `{"timestamp": 1, "input": 600, "output": 1, "hash_ids": [1,2,3]}`, "line 1: hash_ids: 3 of them: a prompt of 600 tokens has 2 blocks of 512"},
		{"x.jsonl", good + strings.Repeat("a", longestLine+1), "x.jsonl: line 2: longer than 4194304 bytes"},
		{"x.csv", "arrival,when\n", `x.csv: line 1: "when": unknown column; must be one of arrival, flow, tier, input, output, max_output`},
		{"x.csv", "arrival,arrival\n", `x.csv: line 1: "arrival": given twice`},
		{"x.csv", "arrival,input,output\n1,2,3\nx,y,3\n", `x.csv: line 3: arrival: "x": must be a number of seconds; input: "y": must be a whole number`},
		{"x.csv", "arrival,input,output\n1,2,3\n1,2\n", "x.csv: line 3: wrong number of fields"},
		{"x.csv", "arrival,input\n1,2\n", "x.csv: line 2: output_length: missing"},
		{"x.csv", "arrival,input,output\n", "x.csv: has no requests"},
		{"x.csv", "arrival,input,output\nNaN,1,1\n", "x.csv: line 2: timestamp: must be from 0 s"},
	} {
		_, err := rest(traceOf(c.name, c.text, TraceOptions{}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.80q: error %v, want %s", c.name, c.text, err, c.want)
		}
	}
}

// Any trace can be simulated as read: its requests are in order and within their ranges.
func FuzzTrace(f *testing.F) {
	f.Add("x.jsonl", mooncake, 1.0)
	f.Add("x.csv", "arrival,flow,output,input\n5,a,3,10\n", 0.5)
	f.Add("x.csv", "arrival,\"flow", 1e3)
	f.Add("x.jsonl", `{"timestamp":1e308,"hash_ids":[18446744073709551615]}`, 1e-3)
	f.Fuzz(func(t *testing.T, name, text string, speed float64) {
		if !(speed >= 0.001 && speed <= 1000) {
			return
		}
		trace := traceOf(name, text, TraceOptions{Speed: speed, Block: 512, Repeat: 2, Most: 1000})
		all, err := rest(trace)
		if err != nil && !strings.HasPrefix(err.Error(), name) {
			t.Errorf("error %v does not name its file", err)
		}
		var last time.Duration
		for _, r := range all {
			if r.At < last || r.Prompt < 1 || r.Output < 1 || r.Prompt > MaxTokens || r.Output > MaxTokens || r.MaxOutput < 0 {
				t.Fatalf("%+v after %v", r, last)
			}
			last = r.At
		}
	})
}
