package chart

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is a DNS server with one Service's addresses, as a cluster's has those of a headless one.
type nameServer struct {
	conn net.PacketConn

	mu        sync.Mutex
	service   string // the first label of the name
	addresses []string
}

func startNameServer(t *testing.T, service string, addresses ...string) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn, service: service, addresses: addresses}
	var served sync.WaitGroup
	served.Go(s.serve)
	t.Cleanup(func() { _ = conn.Close(); served.Wait() })
	return s
}

// set changes the addresses.
func (s *nameServer) set(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = addresses
}

func (s *nameServer) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Authoritative, m.RCode, m.Additionals = true, true, dnsmessage.RCodeNameError, nil
		s.mu.Lock()
		if first, _, _ := strings.Cut(q.Name.String(), "."); first == s.service {
			m.RCode = dnsmessage.RCodeSuccess
			for _, a := range s.addresses {
				if q.Type != dnsmessage.TypeA {
					break
				}
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
				})
			}
		}
		s.mu.Unlock()
		if answer, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(answer, from)
		}
	}
}

// resolver is the field of an Envoy cluster that uses this server.
func (s *nameServer) resolver() map[string]any {
	at := s.conn.LocalAddr().(*net.UDPAddr)
	return map[string]any{
		"name": "envoy.network.dns_resolver.cares",
		"typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig",
			"resolvers": []any{map[string]any{"socket_address": map[string]any{
				"protocol": "UDP", "address": at.IP.String(), "port_value": at.Port,
			}}},
			"dns_resolver_options": map[string]any{"no_default_search_domain": true},
		},
	}
}
