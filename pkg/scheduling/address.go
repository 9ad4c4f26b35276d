package scheduling

import (
	"net/netip"
	"strconv"
	"strings"
)

// HostPort is an address in canonical form. Two values are equal exactly if they mean the same address.
type HostPort struct {
	// Host is an IP address in its shortest form, without brackets, and with IPv4 in IPv6 unwrapped; or, if it is not
	// an IP address, the original text. Addresses with a zone count as text.
	Host string
	// Port is 1 to 65535, or 0 for every port of the host.
	Port uint16
}

// ParseHostPort parses "1.2.3.4", "1.2.3.4:80", "::1", "[::1]", "[::1]:80" or a name, with or without a port and
// surrounding spaces. It always succeeds: anything that is not an address is compared as text (a port that is not a
// number from 1 to 65535 makes the whole entry text). The zero value means that the text was blank.
func ParseHostPort(s string) HostPort {
	s = strings.TrimSpace(s)
	if host, ok := parseIP(s); ok {
		return HostPort{Host: host}
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		if host, ok := parseIP(s[1 : len(s)-1]); ok && strings.Contains(s, ":") {
			return HostPort{Host: host}
		}
	}
	colon := strings.LastIndexByte(s, ':')
	if colon <= 0 {
		return HostPort{Host: s}
	}
	port, err := strconv.ParseUint(s[colon+1:], 10, 16)
	if err != nil || port == 0 {
		return HostPort{Host: s}
	}
	if at, err := netip.ParseAddrPort(s); err == nil && at.Addr().Zone() == "" {
		return HostPort{Host: at.Addr().Unmap().String(), Port: at.Port()}
	}
	if strings.IndexByte(s, ':') != colon {
		return HostPort{Host: s} // several colons, but not an address: "::1%eth0:80", "a:b:80"
	}
	return HostPort{Host: s[:colon], Port: uint16(port)}
}

func parseIP(s string) (string, bool) {
	ip, err := netip.ParseAddr(s)
	if err != nil || ip.Zone() != "" {
		return "", false
	}
	return ip.Unmap().String(), true
}

// IsIP reports whether the host is an IP address.
func (h HostPort) IsIP() bool {
	_, ok := parseIP(h.Host)
	return ok
}

// String returns the canonical text; ParseHostPort parses it back to the same value.
func (h HostPort) String() string {
	if h.Port == 0 {
		return h.Host
	}
	port := strconv.Itoa(int(h.Port))
	if strings.IndexByte(h.Host, ':') >= 0 {
		return "[" + h.Host + "]:" + port
	}
	return h.Host + ":" + port
}
