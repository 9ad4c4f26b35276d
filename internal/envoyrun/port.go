package envoyrun

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// reserve returns an address with a port that the system assigns to no other process until release is called. A process
// that requests the port by number, like Envoy, gets it: the reserving socket is bound but does not listen, and permits
// others to bind the same port. An address with a port is returned unchanged.
func reserve(address string) (reserved string, release func(), err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Port() != 0 {
		return address, func() {}, nil // its problems are reported where it is used
	}
	family, name := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, name = syscall.AF_INET, &syscall.SockaddrInet4{Addr: at.Addr().As4()}
	}
	syscall.ForkLock.RLock() // so that no process started meanwhile inherits the socket
	socket, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return "", nil, fmt.Errorf("envoyrun: reserving a port: %w", err)
	}
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(socket, name),
	)
	bound, nameErr := syscall.Getsockname(socket)
	if err := errors.Join(err, nameErr); err != nil {
		_ = syscall.Close(socket)
		return "", nil, fmt.Errorf("envoyrun: reserving a port: %w", err)
	}
	var port int
	switch bound := bound.(type) {
	case *syscall.SockaddrInet4:
		port = bound.Port
	case *syscall.SockaddrInet6:
		port = bound.Port
	}
	return netip.AddrPortFrom(at.Addr(), uint16(port)).String(), func() { _ = syscall.Close(socket) }, nil
}
