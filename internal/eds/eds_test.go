package eds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"
)

func at(address string) netip.AddrPort { return netip.MustParseAddrPort(address) }

// shown returns a list of endpoints as text, with a minus before draining ones.
func shown(hosts []Host) string {
	var all []string
	for _, h := range hosts {
		sign := ""
		if h.Draining {
			sign = "-"
		}
		all = append(all, sign+h.Address.String())
	}
	return strings.Join(all, " ")
}

// read returns the endpoints of a file in Envoy's view: as messages of its API.
func read(t *testing.T, text []byte) (cluster string, hosts []Host) {
	t.Helper()
	var response discoveryv3.DiscoveryResponse
	if err := protojson.Unmarshal(text, &response); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(response.GetResources()) != 1 {
		t.Fatalf("%d resources", len(response.GetResources()))
	}
	var list endpointv3.ClusterLoadAssignment
	if err := response.GetResources()[0].UnmarshalTo(&list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.GetEndpoints()[0].GetLbEndpoints() {
		socket := e.GetEndpoint().GetAddress().GetSocketAddress()
		hosts = append(hosts, Host{
			Address:  netip.AddrPortFrom(netip.MustParseAddr(socket.GetAddress()), uint16(socket.GetPortValue())),
			Draining: e.GetHealthStatus().String() == "DRAINING",
		})
	}
	return list.GetClusterName(), hosts
}

// The text is a DiscoveryResponse in JSON and the same in YAML, for any name of the cluster.
func TestEncode(t *testing.T) {
	for _, hosts := range [][]Host{
		nil,
		{{Address: at("10.0.0.1:8000")}},
		{{Address: at("10.0.0.1:8000")}, {Address: at("[2001:db8::2]:80"), Draining: true}, {Address: at("10.0.0.3:1")}},
	} {
		const name = "a\"b\\\n: #"
		text := Encode(name, hosts)
		cluster, got := read(t, text)
		if cluster != name || shown(got) != shown(hosts) {
			t.Errorf("%q: %s, want %s", cluster, shown(got), shown(hosts))
		}
		asYAML, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			t.Fatal(err)
		}
		if cluster, got := read(t, asYAML); cluster != name || shown(got) != shown(hosts) {
			t.Errorf("as YAML %q: %s, want %s", cluster, shown(got), shown(hosts))
		}
	}
}

// A removed endpoint drains for the grace, unless it returns.
func TestKept(t *testing.T) {
	start := time.Now()
	k := Kept{Grace: 10 * time.Second}
	a, b, c := at("10.0.0.1:1"), at("10.0.0.2:1"), at("10.0.0.3:1")
	for _, step := range []struct {
		after time.Duration // the start
		list  []netip.AddrPort
		want  string
		next  time.Duration // after the start; 0: none
	}{
		{0, []netip.AddrPort{a, b, c}, "10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", 0},
		{1 * time.Second, []netip.AddrPort{c, a}, "10.0.0.3:1 10.0.0.1:1 -10.0.0.2:1", 11 * time.Second},
		{3 * time.Second, []netip.AddrPort{c}, "10.0.0.3:1 -10.0.0.2:1 -10.0.0.1:1", 11 * time.Second},
		{11*time.Second - 1, []netip.AddrPort{c}, "10.0.0.3:1 -10.0.0.2:1 -10.0.0.1:1", 11 * time.Second},
		{11 * time.Second, []netip.AddrPort{c}, "10.0.0.3:1 -10.0.0.1:1", 13 * time.Second},
		{12 * time.Second, []netip.AddrPort{a}, "10.0.0.1:1 -10.0.0.3:1", 22 * time.Second},
		{22 * time.Second, nil, "-10.0.0.1:1", 32 * time.Second},
		{40 * time.Second, nil, "", 0},
	} {
		now := start.Add(step.after)
		k.Set(step.list, now)
		hosts, next := k.Hosts(now)
		if got := shown(hosts); got != step.want {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
		if next.IsZero() != (step.next == 0) || !next.IsZero() && !next.Equal(start.Add(step.next)) {
			t.Errorf("after %v: the next change is at %v, want %v", step.after, next.Sub(start), step.next)
		}
	}
}

// A list that always changes keeps no more than MaxDraining endpoints, the last removed ones.
func TestKeptIsBounded(t *testing.T) {
	now := time.Now()
	k := Kept{Grace: time.Hour}
	for round := range 5 {
		var list []netip.AddrPort
		for i := range 4000 {
			list = append(list, at(fmt.Sprintf("10.%d.%d.%d:1", round, i>>8, i&255)))
		}
		k.Set(list, now)
	}
	hosts, _ := k.Hosts(now)
	if len(hosts) != 4000+MaxDraining || hosts[len(hosts)-1].Address != at("10.3.15.159:1") {
		t.Errorf("%d endpoints, the last one %v", len(hosts), hosts[len(hosts)-1])
	}
}

// The file is replaced in one step, with its permissions. Its directory gets no other file, even after an error.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "eds.yaml")
	permissions := func(want fs.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%v, %v; want %v", info.Mode(), err, want)
		}
	}
	if err := Write(path, []byte("1")); err != nil {
		t.Fatal(err)
	}
	permissions(0o644)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := Write(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	permissions(0o640)
	before := make([]byte, 10)
	if n, _ := old.Read(before); string(before[:n]) != "1" {
		t.Errorf("the old file has changed to %q: it was not replaced", before[:n])
	}
	if err := Write(dir, []byte("3")); err == nil {
		t.Error("a directory is replaced")
	}
	if err := Write(filepath.Join(dir, "none", "eds.yaml"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	above, _ := os.ReadDir(filepath.Dir(dir))
	if slices.ContainsFunc(above, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("a temporary file is left: %v", above)
	}
}

// A removed endpoint is in the file for exactly the grace. A file is written only after a change or a signal. A failed
// write is retried each second, and its error is logged once.
func TestFollower(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "eds.json")
	a, b := at("10.0.0.1:1"), at("10.0.0.2:1")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lists, again, done := make(chan []netip.AddrPort), make(chan struct{}), make(chan error)
		var writes, failures atomic.Int32
		f := Follower{Path: path, Cluster: "engines", Grace: 10 * time.Second, Wrote: func(_ []Host, err error) {
			writes.Add(1)
			if err != nil {
				failures.Add(1)
			}
		}}
		go func() { done <- f.Run(ctx, []netip.AddrPort{a, b}, lists, again) }()
		want := func(hosts string, wantWrites, wantFailures int32) {
			t.Helper()
			synctest.Wait()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if cluster, got := read(t, text); cluster != "engines" || shown(got) != hosts {
				t.Errorf("%s: %q, want %q", cluster, shown(got), hosts)
			}
			if w, f := writes.Load(), failures.Load(); w != wantWrites || f != wantFailures {
				t.Errorf("%d writes, %d of them failed; want %d and %d", w, f, wantWrites, wantFailures)
			}
		}
		want("10.0.0.1:1 10.0.0.2:1", 1, 0)
		lists <- []netip.AddrPort{a, b}
		want("10.0.0.1:1 10.0.0.2:1", 1, 0)
		lists <- []netip.AddrPort{a}
		want("10.0.0.1:1 -10.0.0.2:1", 2, 0)
		time.Sleep(10*time.Second - 1)
		want("10.0.0.1:1 -10.0.0.2:1", 2, 0)
		time.Sleep(time.Nanosecond)
		want("10.0.0.1:1", 3, 0)
		time.Sleep(time.Hour)
		want("10.0.0.1:1", 3, 0)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		again <- struct{}{}
		want("10.0.0.1:1", 4, 0)

		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		away := dir + ".away"
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		lists <- []netip.AddrPort{b}
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		if same, _ := os.ReadFile(path); !bytes.Equal(same, text) {
			t.Error("the file has changed in between")
		}
		time.Sleep(500 * time.Millisecond)
		want("10.0.0.2:1 -10.0.0.1:1", 6, 1)
		time.Sleep(7 * time.Second)
		want("10.0.0.2:1", 7, 1)
		lists <- nil
		want("-10.0.0.2:1", 8, 1)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want("-10.0.0.2:1", 8, 1)
	})
}

// A follower whose first write fails ends.
func TestFollowerWithoutAFile(t *testing.T) {
	f := Follower{Path: filepath.Join(t.TempDir(), "none", "eds.json"), Wrote: func([]Host, error) { t.Error("told") }}
	if err := f.Run(t.Context(), nil, nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A replaced file keeps its owner and group. Only root can give files away. Other users can give one to their own
// groups.
func TestWriteKeepsTheOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eds.json")
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	owner, group := os.Geteuid(), os.Getegid()
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if owner == 0 {
		owner, group = 65534, 65533
	} else if len(groups) > 0 {
		group = groups[len(groups)-1]
	}
	if err := os.Chown(path, owner, group); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); int(is.Uid) != owner || int(is.Gid) != group || info.Mode() != 0o600 {
		t.Errorf("owner %d, group %d, %v; want %d and %d, 0600", is.Uid, is.Gid, info.Mode(), owner, group)
	}
}

// A symbolic link is refused, whether it leads to a file or not, and its target stays.
func TestWriteRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.json"), filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{"", "old"} {
		if before != "" {
			if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := Write(link, []byte("new"))
		if err == nil || !strings.HasPrefix(err.Error(), link+": is a symbolic link") {
			t.Error(err)
		}
		if text, _ := os.ReadFile(file); string(text) != before {
			t.Errorf("the file has %q", text)
		}
	}
	if to, err := os.Readlink(link); to != file {
		t.Errorf("the link is %q, %v", to, err)
	}
}

// A problem has the same text each time, without the name of a temporary file.
func TestWriteNamesProblemsAlike(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "a.json"): "none/a.json: cannot create a file in its directory: no such file or directory",
		dir:                                  dir + ": cannot be replaced: file exists",
	} {
		if err := Write(path, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
