package kubeenv

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/weir-epp/weir/internal/child"
)

// Env is a running Kubernetes API. Its methods may be called from any goroutine, with two exceptions: methods with a
// testing.T belong to the test's goroutine, and only one goroutine at a time may stop or start the apiserver.
type Env struct {
	assets, dir string
	port        *port
	admin       *rest.Config
	clients     *kubernetes.Clientset
	objects     *dynamic.DynamicClient
	mapper      *restmapper.DeferredDiscoveryRESTMapper

	etcd, apiserver *child.Process
}

// Start starts an environment for one test. It ends with the test.
func Start(t *testing.T) *Env {
	t.Helper()
	e, err := start(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

var shared struct {
	sync.Mutex
	env *Env
	err error
}

// Run runs a package's tests by m.Run, then ends their shared environment, if any. It returns the exit code.
func Run(run func() int) int {
	code := run()
	shared.Lock()
	defer shared.Unlock()
	if shared.env != nil {
		if err := shared.env.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
	}
	return code
}

// Shared returns the shared environment of the package's tests; the first call starts it. The package's TestMain must
// call Run. The test must not stop the apiserver.
func Shared(t *testing.T) *Env {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.env == nil && shared.err == nil {
		shared.env, shared.err = start(t)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.env
}

// start starts an environment; after an error none of its processes is left.
func start(t *testing.T) (e *Env, err error) {
	t.Helper()
	e = &Env{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stop())
		}
	}()
	if e.assets, err = Assets(); err != nil {
		return e, err
	}
	// Short, since the path of a socket has at most 107 bytes.
	if e.dir, err = os.MkdirTemp("", "weir-kube-"); err != nil {
		return e, fmt.Errorf("kubeenv: %w", err)
	}
	if e.port, err = reservePort(); err != nil {
		return e, err
	}
	if err = e.connect(t); err != nil {
		return e, err
	}
	if err = e.startEtcd(); err != nil {
		return e, err
	}
	return e, e.startAPIServer()
}

// connect makes the keys and the administrator's clients.
func (e *Env) connect(t *testing.T) (err error) {
	t.Helper()
	e.admin = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", e.port.number),
		TLSClientConfig: writeKeys(t, e.dir),
		QPS:             -1, // no limit at the client
	}
	if e.clients, err = kubernetes.NewForConfig(e.admin); err != nil {
		return fmt.Errorf("kubeenv: %w", err)
	}
	if e.objects, err = dynamic.NewForConfig(e.admin); err != nil {
		return fmt.Errorf("kubeenv: %w", err)
	}
	e.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(e.clients.Discovery()))
	return nil
}

// stop ends everything and removes the directory.
func (e *Env) stop() error {
	err := e.kill()
	if e.port != nil {
		e.port.release()
	}
	if e.dir != "" {
		err = errors.Join(err, os.RemoveAll(e.dir))
	}
	return err
}

// StopAPIServer ends the apiserver without warning: connections break, and new ones are refused until StartAPIServer.
func (e *Env) StopAPIServer(t *testing.T) {
	t.Helper()
	if err := e.apiserver.Kill(); err != nil {
		t.Fatal(err)
	}
}

// StartAPIServer starts the apiserver again, on the same port and with the same objects and keys, and returns when it
// is ready.
func (e *Env) StartAPIServer(t *testing.T) {
	t.Helper()
	if err := e.startAPIServer(); err != nil {
		t.Fatal(err)
	}
}

// Admin returns a configuration for clients that may do everything.
func (e *Env) Admin() *rest.Config { return rest.CopyConfig(e.admin) }

// Clients returns the administrator's clients.
func (e *Env) Clients() *kubernetes.Clientset { return e.clients }

// Objects returns the administrator's client for objects of any kind.
func (e *Env) Objects() *dynamic.DynamicClient { return e.objects }
