package kubeenv

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/expect"
)

// A stopped apiserver refuses connections. It restarts at the same address with its data, and accepts its earlier
// tokens.
func TestOutage(t *testing.T) {
	env := Start(t)
	namespace := env.Namespace(t)
	env.Apply(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}")
	account := clientsOf(t, env.As(t, namespace, "default"))
	env.StopAPIServer(t)
	address := strings.TrimPrefix(env.Admin().Host, "https://")
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection to the stopped apiserver: %v, %v", conn, err)
	}
	env.StartAPIServer(t)
	if _, err := env.Clients().CoreV1().ConfigMaps(namespace).Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := account.Discovery().ServerVersion(); err != nil {
		t.Errorf("with a token from before: %v", err)
	}
}

// victimVariable makes this test binary a program that starts an environment and waits to be killed.
const victimVariable = "WEIR_KUBEENV_VICTIM"

// A test process that is killed without a chance to clean up takes the environment's processes with it.
func TestEndsWithItsParent(t *testing.T) {
	if os.Getenv(victimVariable) != "" {
		env := Start(t)
		fmt.Println("processes", env.etcd.Pid(), env.apiserver.Pid(), env.dir)
		select {}
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestEndsWithItsParent$")
	victim.Env = append(os.Environ(), victimVariable+"=yes")
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
	var etcd, apiserver int
	var dir string
	if _, err := fmt.Sscanf(line, "processes %d %d %s", &etcd, &apiserver, &dir); err != nil {
		t.Fatalf("no environment there: %s", line)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{etcd, apiserver} {
		// The orphan has another parent: an init process reaps it, or, in a container without one, no process does.
		expect.True(t, fmt.Sprintf("process %d has ended", pid), func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}
