package modelsim

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
)

// BenchmarkInstant measures one request to an instant server over loopback, with a minimal client: raw bytes on a kept
// connection, with a known answer length. Client and server share the processor.
func BenchmarkInstant(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("body=%dKB", size>>10), func(b *testing.B) {
			s, err := Start(Instant())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			body := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", size) + `"}]}`
			request := []byte(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(body), body))
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", s.Address())
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				r := bufio.NewReader(conn)
				for pb.Next() {
					if _, err := conn.Write(request); err != nil {
						b.Error(err)
						return
					}
					if err := skipAnswer(r, len(s.prepared[chat].whole)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// skipAnswer reads one answer with a body of the known length.
func skipAnswer(r *bufio.Reader, length int) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err = r.Discard(length)
			return err
		}
	}
}
