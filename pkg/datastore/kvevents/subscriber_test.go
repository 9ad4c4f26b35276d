package kvevents

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/zmtp"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// heard is what a subscriber has told.
type heard struct {
	mu              sync.Mutex
	clears, gaps    int
	stored, removed int
	size            int64
	failures        map[Reason]int
	log             []string
}

func (h *heard) locked(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// await waits until what was heard is as wanted.
func (h *heard) await(t *testing.T, what string, enough func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		done := false
		if h.locked(func() { done = enough() }); done {
			return
		}
		if time.Now().After(deadline) {
			h.locked(func() {
				t.Fatalf("%s: clears %d, gaps %d, stored %d, removed %d, size %d, failures %v\n%s", what, h.clears, h.gaps, h.stored, h.removed,
					h.size, h.failures, strings.Join(h.log, "\n"))
			})
		}
	}
}

// subscribe follows the publishers at addresses until the test ends.
func subscribe(t *testing.T, addresses ...string) (*Subscriber, *heard) {
	t.Helper()
	h := &heard{failures: map[Reason]int{}}
	log := funcr.New(func(_, args string) { h.locked(func() { h.log = append(h.log, args) }) }, funcr.Options{})
	_, port, _ := net.SplitHostPort(addresses[0])
	s := New(Config{Port: port}, Parts{
		Cleared: func(_ scheduling.EndpointID, gap bool) {
			h.locked(func() {
				if h.clears++; gap {
					h.gaps++
				}
			})
		},
		Sized:  func(_ scheduling.EndpointID, tokens int64) { h.locked(func() { h.size = tokens }) },
		Blocks: func(stored, removed int) { h.locked(func() { h.stored += stored; h.removed += removed }) },
		Failed: func(r Reason) { h.locked(func() { h.failures[r]++ }) },
	}, log)
	s.wait = 20 * time.Millisecond
	s.Follow(snapshotOf(addresses...))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return s, h
}

func snapshotOf(addresses ...string) *scheduling.Snapshot {
	var all []scheduling.Endpoint
	for i, a := range addresses {
		host, _, _ := net.SplitHostPort(a)
		all = append(all, scheduling.Endpoint{ID: scheduling.EndpointID(i), Key: a, Address: net.JoinHostPort(host, "8000"), Ready: true})
	}
	return scheduling.NewSnapshot(1, all)
}

// saying is a publisher that says the same on every connection, and then keeps it open.
func saying(t *testing.T, says []byte) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = l.Close() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				_, _ = c.Write(says)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	return l.Addr().String()
}

// hello is what a publisher says before its messages.
var hello = append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL"), append(make([]byte, 48), "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"...)...)

func message(seq uint64, batch []byte) []byte {
	return zmtp.Append(nil, nil, binary.BigEndian.AppendUint64(nil, seq), batch)
}

// An engine with a cache that is smaller than its prompts tells its size, and that it was cleared; after a restart its messages
// begin anew, which is a gap.
func TestEngine(t *testing.T) {
	cfg := modelsim.DefaultConfig()
	cfg.PrefixCaching, cfg.KVEvents = true, "127.0.0.1:0"
	cfg.Engine.Blocks, cfg.Engine.BlockSize = 100, 16
	cfg.Engine.Step.Base, cfg.Engine.Step.PerSequence, cfg.Engine.Step.PerToken = time.Microsecond, 0, 0
	engine, err := modelsim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	at := engine.KVEvents()
	_, h := subscribe(t, at)
	ask := func(n int) {
		t.Helper()
		body := fmt.Sprintf(`{"prompt":"%d%s","max_tokens":1}`, n, strings.Repeat("x", 640))
		if err := expect.Post(t.Context(), engine.URL()+"/v1/completions", body).Served(); err != nil {
			t.Fatal(err)
		}
	}
	stored := 0
	for stored == 0 { // a subscription takes a moment, and what was published before it is lost
		ask(0)
		if err := expect.Post(t.Context(), engine.URL()+"/reset_prefix_cache", "").Served(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		h.locked(func() { stored = h.stored })
	}
	h.await(t, "the cache is cleared", func() bool { return h.clears > 0 && h.gaps == 0 })
	n := 1
	askUnlocked := func() { // so that events are heard meanwhile
		h.mu.Unlock()
		defer h.mu.Lock()
		ask(n)
		n++
	}
	h.await(t, "the size is known", func() bool {
		askUnlocked()
		return h.size > 0
	})
	if h.locked(func() { stored = int(h.size) }); stored > 1600 || stored < 1600*8/10 {
		t.Errorf("the size is %d, and the cache has room for 1600", stored)
	}
	engine.Close()
	h.await(t, "the connection has ended", func() bool { return h.failures[Unreachable] > 0 })
	cfg.KVEvents = at
	if engine, err = modelsim.Start(cfg); err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	h.await(t, "the restart is seen", func() bool {
		askUnlocked()
		return h.gaps == 1
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.log) != 1 || !strings.Contains(h.log[0], "WARNING") {
		t.Errorf("the log has %q", h.log)
	}
}

// The bytes of a real vLLM 0.32.0, as a subscriber gets them.
func TestRealBytes(t *testing.T) {
	says, err := os.ReadFile("testdata/vllm-0.32.0.bin")
	if err != nil {
		t.Fatal(err)
	}
	_, h := subscribe(t, saying(t, says))
	h.await(t, "all messages are read", func() bool {
		return h.stored == realStored && h.removed == realRemoved
	})
	if h.clears > 0 || len(h.failures) > 0 {
		t.Errorf("clears %d, failures %v", h.clears, h.failures)
	}
}

// Peers that are no publishers of KV events fail by reason, are tried again, and have one warning; so does an address at which
// nobody listens.
func TestStrangers(t *testing.T) {
	event := batchOf(list3("AllBlocksCleared"))
	with := func(m ...[]byte) []byte { return append(bytes.Clone(hello), bytes.Join(m, nil)...) }
	for name, c := range map[string]struct {
		says   []byte
		reason Reason
		clears bool
	}{
		"HTTP":                  {[]byte("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nserver: something that is no ZeroMQ\r\n\r\n"), BadProtocol, false},
		"a message of one part": {with(zmtp.Append(nil, event)), BadMessage, false},
		"no number":             {with(zmtp.Append(nil, nil, []byte("7"), event)), BadMessage, false},
		"no batch":              {with(message(0, []byte("hello"))), BadMessage, true},
		"a long topic":          {with(zmtp.Append(nil, make([]byte, 2000), make([]byte, 8), event)), BadMessage, false},
		"a huge message":        {with([]byte("\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00\x02\x7f\xff\xff\xff\xff\xff\xff\xff")), BadMessage, false},
		"the largest number":    {with([]byte("\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff")), BadMessage, false},
		"a hundred parts":       {with(zmtp.Append(nil, append([][]byte{nil, make([]byte, 8), event}, make([][]byte, 100)...)...)), BadMessage, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, h := subscribe(t, saying(t, c.says))
			h.await(t, "it fails twice", func() bool { return h.failures[c.reason] >= 2 && len(h.failures) == 1 })
			h.locked(func() {
				if len(h.log) != 1 || h.stored > 0 || c.clears != (h.clears > 0) {
					t.Errorf("clears %d, log %q", h.clears, h.log)
				}
			})
		})
	}
	t.Run("nobody", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		_, h := subscribe(t, l.Addr().String())
		h.await(t, "it fails twice", func() bool { return h.failures[Unreachable] >= 2 })
	})
}

// A missing message clears; those that follow each other do not, over two connections either. What a flood says is read slowly.
func TestGapsAndFloods(t *testing.T) {
	says := bytes.Clone(hello)
	for seq := range uint64(20_000) {
		if seq == 700 {
			continue
		}
		says = append(says, message(seq, batchOf(list3("BlockStored", list3(int(seq)), nil, nil, 16)))...)
	}
	_, h := subscribe(t, saying(t, says))
	began := time.Now()
	h.await(t, "the gap is seen", func() bool { return h.gaps == 1 && h.stored >= 15_000 })
	if took := time.Since(began); took < 800*time.Millisecond { // a KiB each at least, at 8 MiB/s, and a second ahead
		t.Errorf("15000 messages in %v", took)
	}
	h.await(t, "all are read", func() bool { return h.stored == 19_999 && h.gaps == 1 })
}

// An endpoint that leaves, or has another address, is not followed any more.
func TestFollow(t *testing.T) {
	first := saying(t, append(bytes.Clone(hello), message(0, batchOf(list3("AllBlocksCleared")))...))
	s, h := subscribe(t, first)
	h.await(t, "it is followed", func() bool { return h.clears == 1 })
	s.Follow(snapshotOf(first))
	s.Follow(scheduling.NewSnapshot(2, nil))
	s.Follow(snapshotOf(first))
	h.await(t, "it is followed again", func() bool { return h.clears == 2 })
	s.Follow(scheduling.NewSnapshot(3, []scheduling.Endpoint{{ID: 0, Key: first, Address: "127.0.0.1:8000", Ready: false}}))
	s.Follow(snapshotOf(first))
	h.await(t, "it is ready again", func() bool { return h.clears == 3 })
}

// The publisher is at a port of its own, or at the endpoint's and some more.
func TestAddress(t *testing.T) {
	for _, c := range []struct{ port, endpoint, want string }{
		{"5557", "10.0.0.1:8000", "10.0.0.1:5557"},
		{"+1000", "10.0.0.1:8000", "10.0.0.1:9000"},
		{"5557", "[fd00::1]:8000", "[fd00::1]:5557"},
		{"+1", "10.0.0.1:65535", ""},
		{"5557", "nowhere", ""},
	} {
		got, err := Config{Port: c.port}.addressOf(c.endpoint)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s of %s: %q, %v", c.port, c.endpoint, got, err)
		}
	}
	for _, port := range []string{"0", "65536", "-1", "x", "+", "++1", "+-1", " 1", "+0"} {
		if err := (Config{Port: port}).Validate(); err == nil || !strings.Contains(err.Error(), "must be from 1 to 65535") {
			t.Errorf("%q: %v", port, err)
		}
	}
	if err := (Config{Topic: strings.Repeat("x", 256)}).Validate(); err == nil {
		t.Error("a long topic")
	}
	if err := (Config{Port: "+1", Topic: "kv"}).Validate(); err != nil {
		t.Error(err)
	}
}

// Blocks in the bytes of the real vLLM.
const realStored, realRemoved = 104, 104
