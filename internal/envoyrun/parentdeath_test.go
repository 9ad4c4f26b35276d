package envoyrun

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
)

// Envoy asks the kernel to be killed with its parent. It still keeps running if it is started from a thread that ends
// at once: a goroutine that returns while locked ends its thread.
func TestOutlivesTheCallersThread(t *testing.T) {
	address := modelServer(t)
	started := make(chan *Envoy)
	go func() {
		runtime.LockOSThread() // and never unlocked
		envoy, err := Start(t.Context(), Options{Config: "direct", ModelServers: []string{address}})
		if err != nil {
			t.Error(err)
		}
		started <- envoy
	}()
	envoy := <-started
	if envoy == nil {
		return
	}
	defer envoy.Kill()
	time.Sleep(100 * time.Millisecond)
	wantServed(t, envoy)
}

// victimVariable makes this test binary a program that starts an Envoy and waits to be killed.
const victimVariable = "WEIR_ENVOYRUN_VICTIM"

func beVictim() {
	envoy, err := Start(context.Background(), Options{
		Config: "direct", ModelServers: []string{"127.0.0.1:1"}, Dir: os.Getenv(victimVariable),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(envoy.Pid())
	<-envoy.Done()
}

// A program that is killed without a chance to clean up takes its Envoy with it.
func TestEndsWithItsParent(t *testing.T) {
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimVariable+"="+t.TempDir())
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Wait() }()
	defer func() { _ = victim.Process.Kill() }()
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("no Envoy there: %s", line)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The orphan has another parent: an init process reaps it, or, in a container without one, no process does.
	expect.True(t, "Envoy has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
