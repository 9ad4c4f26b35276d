package body

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/splitmix"
)

func blocksOf(t testing.TB, body string, seed uint64) Blocks {
	t.Helper()
	f, err := scan([]byte(body))
	if err != nil {
		t.Fatalf("%v of %.80s", err, body)
	}
	return f.Blocks([]byte(body), seed)
}

// shared returns how many blocks two bodies have in common.
func shared(t testing.TB, a, b string) int {
	x, y := blocksOf(t, a, 1).Keys, blocksOf(t, b, 1).Keys
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

func words(n int, word string) string { return strings.Repeat(word+" ", n/(len(word)+1)+1)[:n] }

// The turns of a conversation share every block of the earlier one, whatever else the bodies have and in whatever order.
func TestTurnsShareBlocks(t *testing.T) {
	system, first, answer := words(3000, "system"), words(1500, "first"), words(700, "answer")
	turn1 := `{"model":"m","user":"1","messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + first + `"}]}`
	turn2 := `{ "messages" : [ {"content":"` + system + `","role":"system","name":"x"} , {"role":"user","content":"` + first + `"},
		{"role":"assistant","content":"` + answer + `"},{"role":"user","content":"more"}], "user":"2","max_tokens":7}`
	if n, all := shared(t, turn1, turn2), len(blocksOf(t, turn1, 1).Keys); n != all || all != 4 {
		t.Errorf("%d of %d blocks are shared", n, all)
	}
	other := strings.Replace(turn2, "system system", "sYstem system", 1)
	if n := shared(t, turn1, other); n != 0 {
		t.Errorf("%d blocks are shared with another system prompt", n)
	}
	later := strings.Replace(turn2, "first first", "first First", 1)
	if n := shared(t, turn1, later); n != 2 {
		t.Errorf("%d blocks are shared with another question", n)
	}
}

// Templates show the tools and the system prompt first: a difference there ends every match.
func TestOrderOfTemplates(t *testing.T) {
	message := `"messages":[{"role":"user","content":"` + words(5000, "a") + `"}]`
	plain := `{` + message + `}`
	for _, with := range []string{`"tools":[{"type":"function"}]`, `"system":"s"`, `"instructions":"i"`, `"cache_salt":"x"`} {
		one, after := `{`+with+`,`+message+`}`, `{`+message+`,`+with+`}`
		if n := shared(t, plain, one); n != 0 {
			t.Errorf("%s: %d blocks are shared without it", with, n)
		}
		if n, all := shared(t, one, after), len(blocksOf(t, one, 1).Keys); n != all || n == 0 {
			t.Errorf("%s: %d of %d are shared with another order of keys", with, n, all)
		}
	}
}

// A prompt of one text has whole blocks only, since it may go on; of 1 KiB, and 8 KiB after the first 512; and no more than
// a bound.
func TestBlocksOfAPrompt(t *testing.T) {
	for _, c := range []struct{ bytes, blocks int }{
		{1023, 0}, {1024, 1}, {5000, 4}, {512 << 10, 512}, {520<<10 - 1, 512}, {520 << 10, 513}, {30 << 20, mostBlocks},
	} {
		for _, key := range []string{"prompt", "input"} {
			b := blocksOf(t, fmt.Sprintf(`{"%s":"%s"}`, key, words(c.bytes, "words")), 1)
			if len(b.Keys) != c.blocks || len(b.Ends) != c.blocks || int(b.Bytes) != c.bytes {
				t.Errorf("%s of %d bytes: %d blocks of %d", key, c.bytes, len(b.Keys), b.Bytes)
			}
			if n := len(b.Ends); n > 0 && n < mostBlocks && c.bytes-int(b.Ends[n-1]) >= largeBlockBytes || !slices.IsSorted(b.Ends) {
				t.Errorf("%s of %d bytes: ends %d", key, c.bytes, b.Ends[n-1])
			}
		}
	}
	if n := shared(t, `{"prompt":"`+words(3500, "x")+`"}`, `{"prompt":"`+words(9000, "x")+`"}`); n != 3 {
		t.Errorf("%d blocks are shared with a longer prompt", n)
	}
	if n := shared(t, `{"prompt":"`+words(3500, "x")+`"}`, `{"input":"`+words(3500, "x")+`"}`); n != 0 {
		t.Errorf("%d blocks are shared with an input", n)
	}
}

// Media are hashed, and are no bytes of text.
func TestMediaAreNoText(t *testing.T) {
	body := func(image string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"` + words(2000, "look") +
			`"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]},{"role":"user","content":"` + words(2000, "and") + `"}]}`
	}
	a, b := blocksOf(t, body(strings.Repeat("QUJD", 9000)), 1), blocksOf(t, body(strings.Repeat("QUJE", 9000)), 1)
	if a.Bytes > 4300 || !slices.Equal(a.Ends, b.Ends) || a.Keys[1] != b.Keys[1] || a.Keys[2] == b.Keys[2] || len(a.Keys) != 3 {
		t.Errorf("%d bytes of text, ends %v, keys %x and %x", a.Bytes, a.Ends, a.Keys, b.Keys)
	}
}

// Many short messages take no more blocks than one message of their length: an index has room for as many tokens of them. The
// next turn shares all but the last KiB.
func TestShortMessages(t *testing.T) {
	chat := func(messages, bytes int) string {
		var s strings.Builder
		for i := range messages {
			fmt.Fprintf(&s, `{"role":"user","content":"%s"},`, words(bytes, fmt.Sprint("message", i)))
		}
		return `{"messages":[` + s.String()[:s.Len()-1] + `]}`
	}
	for _, c := range []struct{ messages, bytes, most int }{{100, 240, 25}, {4096, 0, 40}, {1000, 20, 40}} {
		b := blocksOf(t, chat(c.messages, c.bytes), 1)
		if len(b.Keys) > c.most || len(b.Keys) < int(b.Bytes)/1024-1 {
			t.Errorf("%d messages of %d bytes take %d blocks for %d bytes", c.messages, c.bytes, len(b.Keys), b.Bytes)
		}
		if n := shared(t, chat(c.messages, c.bytes), chat(c.messages+1, c.bytes)); n != len(b.Keys) {
			t.Errorf("%d messages of %d bytes: the next turn shares %d of %d blocks", c.messages, c.bytes, n, len(b.Keys))
		}
	}
	a, b := `{"messages":[{"role":"user","content":"`+words(900, "a")+`"},{"content":"`, words(900, "b")+`"}]}`
	if shared(t, a+b, strings.Replace(a, `"},{"content":"`, `\"\"`, 1)+b) > 0 {
		t.Error("two messages are one")
	}
}

// Text that looks like a medium is text: an engine reads all of it, so whoever has only the beginning has little.
func TestTextThatLooksLikeMedia(t *testing.T) {
	encoded := strings.Repeat("QUJD", 50_000)
	for name, format := range map[string]string{
		"base64":            `{"messages":[{"role":"user","content":"%s"}]}`,
		"a data URL":        `{"messages":[{"role":"user","content":"data:image/png;base64,%s"}]}`,
		"text of a part":    `{"messages":[{"role":"user","content":[{"type":"text","text":"%s"}]}]}`,
		"a document's text": `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"%s"}}]}]}`,
		"a prompt":          `{"prompt":"data:,%s"}`,
		"a system prompt":   `{"system":"data:,%s","messages":[]}`,
	} {
		b := blocksOf(t, fmt.Sprintf(format, encoded), 1)
		if b.Tokens = 100_000; int(b.Bytes) < len(encoded) || len(b.Keys) < 190 || b.TokensIn(2) > 1100 {
			t.Errorf("%s: %d bytes, %d blocks, %d tokens in the first two", name, b.Bytes, len(b.Keys), b.TokensIn(2))
		}
	}
	for name, format := range map[string]string{
		"an image":   `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
		"a document": `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"%s"}}]}]}`,
		"a file":     `{"input":[{"role":"user","content":[{"type":"input_file","file_data":"%s"}]}]}`,
	} {
		if b := blocksOf(t, fmt.Sprintf(format, encoded), 1); b.Bytes > 200 {
			t.Errorf("%s: %d bytes", name, b.Bytes)
		}
	}
}

// Templates show which tool has answered, and not what a speaker or a call is named.
func TestNames(t *testing.T) {
	chat := func(item string) string {
		return `{"input":[` + item + `,{"role":"user","content":"` + words(2000, "and") + `"}]}`
	}
	for item, shown := range map[string]bool{
		`{"role":"tool","name":"%s","content":"42"}`:                       true,
		`{"type":"function_call","name":"%s","arguments":"{}"}`:            true,
		`{"role":"user","name":"%s","content":"hi"}`:                       false,
		`{"name":"%s","role":"assistant","content":"hi"}`:                  false,
		`{"type":"function_call_output","call_id":"%s","output":"42"}`:     false,
		`{"role":"tool","tool_call_id":"%s","content":"42"}`:               false,
		`{"type":"message","id":"%s","role":"assistant","status":"%[1]s"}`: false,
	} {
		if n := shared(t, chat(fmt.Sprintf(item, "one")), chat(fmt.Sprintf(item, "two"))); (n == 0) != shown || !shown && n != 1 {
			t.Errorf("%s: %d blocks are shared", item, n)
		}
	}
}

// Without the seed no key can be told, and of two seeds no keys are equal.
func TestSeed(t *testing.T) {
	body := `{"prompt_cache_key":"s1","prompt":"` + words(9000, "x") + `"}`
	a, b := blocksOf(t, body, 1), blocksOf(t, body, 2)
	for i := range a.Keys {
		if a.Keys[i] == b.Keys[i] {
			t.Errorf("block %d has one key with two seeds", i)
		}
	}
	f, _ := scan([]byte(body))
	one, ok := f.SessionKey([]byte(body), 1)
	two, _ := f.SessionKey([]byte(body), 2)
	if !ok || one == two {
		t.Errorf("session %x and %x, %t", one, two, ok)
	}
	for _, none := range []string{`{"prompt_cache_key":""}`, `{"prompt_cache_key":null}`, `{}`, `{"prompt_cache_key":7}`} {
		f, _ := scan([]byte(none))
		if _, ok := f.SessionKey([]byte(none), 1); ok {
			t.Errorf("%s has a session", none)
		}
	}
}

// Every byte counts, wherever it stands, and so does its place.
func TestEveryByteCounts(t *testing.T) {
	w := blockWriter{a: splitmix.Mix(1), c: splitmix.Mix(2)}
	for _, n := range []int{1, 15, 16, 31, 32, 33, 63, 64, 65, 96, 127, 1024} {
		p := make([]byte, n)
		seen := map[uint64]int{w.hash(7, p): -1}
		for i := range p {
			p[i] = 1
			h := w.hash(7, p)
			if at, ok := seen[h]; ok {
				t.Errorf("of %d bytes, a change at %d is as one at %d", n, i, at)
			}
			seen[h] = i
			p[i] = 0
		}
	}
}

// A client that knows the seed can build prompts that differ and have one key; with the pool's secret they have two. So they
// gain nothing but a detour to an engine that has less of their prompt than Weir takes it to have.
func TestCollidingPromptsNeedTheSeed(t *testing.T) {
	collide := func(seed, at uint64) bool {
		known := blockWriter{a: splitmix.Mix(seed ^ 0xa0761d6478bd642f), c: splitmix.Mix(seed ^ 0xe7037ed1a0b428db)}
		one, two := make([]byte, 16), make([]byte, 16)
		binary.LittleEndian.PutUint64(one, known.a) // the first factor is 0, so the second does not count
		binary.LittleEndian.PutUint64(two, known.a)
		two[9] = 1
		w := blockWriter{a: splitmix.Mix(at ^ 0xa0761d6478bd642f), c: splitmix.Mix(at ^ 0xe7037ed1a0b428db)}
		return w.hash(7, one) == w.hash(7, two)
	}
	if !collide(1, 1) {
		t.Error("the prompts are not built as their comment says")
	}
	for at := range uint64(10_000) {
		if at != 1 && collide(1, at) {
			t.Errorf("the prompts for seed 1 collide with seed %d", at)
		}
	}
}

// FuzzBlocks checks that no body that can be read ends in a panic, and that blocks are as doc.go has them.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"a":[1,{"b":null}]},"x\"y"]},"z",[1],7],"tools":[],"prompt":["a",[1,2]],"input":{"a":{}},"system":true}`))
	f.Add([]byte(`{"messages":{"a":1},"prompt":null,"input":[ ],"cache_salt":[1]}`))
	r := rand.New(rand.NewPCG(1, 2))
	long, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "u", "content": words(5000, fmt.Sprint(r.Uint64()))}}})
	f.Add(long)
	f.Fuzz(func(t *testing.T, b []byte) {
		fields, err := scan(b)
		if err != nil {
			return
		}
		got := fields.Blocks(b, 7)
		if len(got.Keys) != len(got.Ends) || !slices.IsSorted(got.Ends) || len(got.Ends) > 0 && got.Ends[len(got.Ends)-1] > got.Bytes || int(got.Bytes) > len(b) {
			t.Errorf("%+v", got)
		}
		if again := fields.Blocks(slices.Clone(b), 7); !slices.Equal(again.Keys, got.Keys) {
			t.Error("the same body has other keys")
		}
	})
}

// BenchmarkBlocks measures what the keys of a body of 400 KB cost besides the scan.
func BenchmarkBlocks(b *testing.B) {
	var s strings.Builder
	s.WriteString(`{"model":"m","messages":[`)
	for i := range 100 {
		fmt.Fprintf(&s, `{"role":"user","content":"%s"},`, words(4000, fmt.Sprint("word", i)))
	}
	body := []byte(s.String()[:s.Len()-1] + `]}`)
	f, err := scan(body)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		f.Blocks(body, 1)
	}
}
