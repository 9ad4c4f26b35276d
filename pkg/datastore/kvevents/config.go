package kvevents

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Config has the addresses of engines' publishers.
type Config struct {
	// Port is the port of an endpoint's publisher, 1 to 65535, or with a plus sign a number added to the endpoint's own
	// port; empty: no events are followed.
	Port string
	// Topic is the prefix of the topics to subscribe to; empty: all.
	Topic string
}

const maxPort = 65535

// Validate reports every problem at once, as invalid.Problems.
func (c Config) Validate() error {
	var ps invalid.Problems
	if c.Port != "" {
		if _, _, err := c.port(); err != nil {
			ps.Add(invalid.At("Port"), c.Port, "must be from 1 to 65535, with a plus sign in front to add it to each endpoint's own port")
		}
	}
	if len(c.Topic) > 255 {
		ps.Add(invalid.At("Topic"), c.Topic, "must have at most 255 bytes")
	}
	return ps.Err()
}

// port returns the number in Port; added is true if it is added to the endpoint's.
func (c Config) port() (n int, added bool, err error) {
	digits, added := strings.CutPrefix(c.Port, "+")
	if n, err = strconv.Atoi(digits); err != nil || n < 1 || n > maxPort || digits[0] == '+' {
		return 0, added, fmt.Errorf("kvevents: %q is no port", c.Port)
	}
	return n, added, nil
}

// addressOf returns the address of the publisher of an endpoint.
func (c Config) addressOf(endpoint string) (string, error) {
	host, own, err := net.SplitHostPort(endpoint)
	if err != nil {
		return "", fmt.Errorf("kvevents: %w", err)
	}
	n, added, err := c.port()
	if err != nil {
		return "", err
	}
	if added {
		port, err := strconv.Atoi(own)
		if err != nil || port+n > maxPort {
			return "", fmt.Errorf("kvevents: there is no port %s + %d", own, n)
		}
		n += port
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}
