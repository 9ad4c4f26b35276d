package datastore

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// ParseEndpoints parses the values of --endpoints. Each value is one "ip:port" (IPv6 as "[::1]:80") or several
// separated by commas. The returned endpoints are ready, list no models, and have canonical addresses. Every problem is
// reported at once, as invalid.Problems, with the offending text.
func ParseEndpoints(values []string) ([]scheduling.Endpoint, error) {
	var endpoints []scheduling.Endpoint
	var problems invalid.Problems
	seen := map[string]bool{}
	for _, value := range values {
		for text := range strings.SplitSeq(value, ",") {
			address, err := parseAddress(strings.TrimSpace(text))
			switch {
			case err != nil:
				problems.Add(endpointsField, nil, "%v", err)
			case seen[address]:
				problems.Add(endpointsField, nil, "%q is listed twice", address)
			default:
				seen[address] = true
				endpoints = append(endpoints, scheduling.Endpoint{Address: address, Ready: true})
			}
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return endpoints, nil
}

// parseAddress returns the canonical form of an "ip:port" that Envoy can route to.
func parseAddress(text string) (string, error) {
	at := scheduling.ParseHostPort(text)
	switch {
	case text == "":
		return "", errors.New(`"" is empty, want ip:port`)
	case !at.IsIP():
		return "", notAnAddress(text)
	case at.Port == 0:
		return "", fmt.Errorf("%q has no port, want ip:port (IPv6 as [::1]:80)", text)
	case netip.MustParseAddr(at.Host).IsUnspecified():
		return "", fmt.Errorf("%q is not a destination, but means any address", text)
	}
	return at.String(), nil
}

// notAnAddress explains why a text whose host is not an IP address is not accepted.
func notAnAddress(text string) error {
	host, port, found := text, "", false
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		host, port, found = text[:i], text[i+1:], true
	}
	if found && scheduling.ParseHostPort(host).IsIP() {
		return fmt.Errorf("%q has a bad port %q, want 1 to 65535", text, port)
	}
	if strings.ContainsAny(host, "%[]:/") {
		return fmt.Errorf("%q is not an address, want ip:port (IPv6 as [::1]:80)", text)
	}
	return fmt.Errorf("%q is a hostname, want ip:port: Envoy needs an address, and resolves no names", text)
}
