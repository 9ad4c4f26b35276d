package scheduling

import (
	"strings"
	"testing"
)

func TestParseHostPort(t *testing.T) {
	cases := []struct {
		in   string
		want HostPort
	}{
		{"1.2.3.4", HostPort{"1.2.3.4", 0}},
		{"1.2.3.4:80", HostPort{"1.2.3.4", 80}},
		{" 1.2.3.4:80\t", HostPort{"1.2.3.4", 80}},
		{"1.2.3.4:65535", HostPort{"1.2.3.4", 65535}},
		{"::1", HostPort{"::1", 0}},
		{"[::1]", HostPort{"::1", 0}},
		{"[::1]:80", HostPort{"::1", 80}},
		{" [::1]:80 ", HostPort{"::1", 80}},
		{"[0:0:0::1]:080", HostPort{"::1", 80}},
		{"2001:DB8::A", HostPort{"2001:db8::a", 0}},
		// An IPv4 address wrapped in IPv6 is that address: Go's own listeners report it that way.
		{"[::ffff:1.2.3.4]:80", HostPort{"1.2.3.4", 80}},
		{"::ffff:1.2.3.4", HostPort{"1.2.3.4", 0}},
		// Without brackets the port is part of the address, as the text says.
		{"::1:80", HostPort{"::1:80", 0}},
		// Names are text.
		{"pod-a", HostPort{"pod-a", 0}},
		{"pod-a:80", HostPort{"pod-a", 80}},
		{"Pod-A:80", HostPort{"Pod-A", 80}},
		// A bad port makes the whole entry text: it never means "all ports".
		{"1.2.3.4:0", HostPort{"1.2.3.4:0", 0}},
		{"1.2.3.4:65536", HostPort{"1.2.3.4:65536", 0}},
		{"1.2.3.4:", HostPort{"1.2.3.4:", 0}},
		{"1.2.3.4:http", HostPort{"1.2.3.4:http", 0}},
		{"1.2.3.4:+80", HostPort{"1.2.3.4:+80", 0}},
		{"[::1]:0", HostPort{"[::1]:0", 0}},
		{":80", HostPort{":80", 0}},
		{"a:b:80", HostPort{"a:b:80", 0}},
		{"[1.2.3.4]", HostPort{"[1.2.3.4]", 0}},
		{"[::1", HostPort{"[::1", 0}},
		{"fe80::1%eth0", HostPort{"fe80::1%eth0", 0}},
		{"[fe80::1%eth0]:80", HostPort{"[fe80::1%eth0]:80", 0}},
		{"", HostPort{}},
		{" \t", HostPort{}},
	}
	for _, c := range cases {
		if got := ParseHostPort(c.in); got != c.want {
			t.Errorf("ParseHostPort(%q) = %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestHostPortString(t *testing.T) {
	for in, want := range map[string]string{
		" 1.2.3.4:80": "1.2.3.4:80", "[0::1]:80": "[::1]:80", "[0::1]": "::1", "pod-a:80": "pod-a:80", "": "",
	} {
		if got := ParseHostPort(in).String(); got != want {
			t.Errorf("ParseHostPort(%q).String() = %q, want %q", in, got, want)
		}
	}
}

// Any text has one canonical form, which is canonical itself, whatever spaces surround it. An address with a port never
// becomes a whole host.
func FuzzParseHostPort(f *testing.F) {
	for _, seed := range []string{
		"1.2.3.4", "1.2.3.4:80", "[::1]:80", "::1", " [::1] ", "a:b", "a:80", "::ffff:1.2.3.4", "[fe80::1%x ]", ":", "[]:1",
		"1.2.3.4:0", "[1.2.3.4]:80", "fe80::1%]:80", "\x00", "x :80",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := ParseHostPort(text)
		if again := ParseHostPort(once.String()); again != once {
			t.Fatalf("%q is %+v, but its text %q is %+v", text, once, once.String(), again)
		}
		if padded := ParseHostPort("\t " + text + " \n"); padded != once {
			t.Fatalf("%q is %+v, and %+v with spaces around", text, once, padded)
		}
		if once == (HostPort{}) != (strings.TrimSpace(text) == "") {
			t.Fatalf("%q is %+v", text, once)
		}
		if once.IsIP() && once.Port == 0 && strings.Count(text, ":") == 1 {
			t.Fatalf("%q names all ports of %s", text, once.Host)
		}
	})
}
