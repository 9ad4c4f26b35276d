package kubeenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weir-epp/weir/internal/child"
)

// startTimeout is the time in which a process must serve, even on a busy machine.
const startTimeout = 2 * time.Minute

// run starts a program, and appends its output to a log with its name.
func (e *Env) run(name string, arguments ...string) (*child.Process, error) {
	log, err := os.OpenFile(e.logOf(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("kubeenv: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(e.assets, name), arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = e.dir, log, log
	process, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("kubeenv: starting %s: %w", name, err)
	}
	return process, nil
}

func (e *Env) logOf(name string) string { return filepath.Join(e.dir, name+".log") }

// nowhere is the peer address of etcd, which has no peers.
const nowhere = "http://127.0.0.1:1"

// startEtcd starts etcd on sockets in the directory. It does not wait for etcd: the apiserver does.
func (e *Env) startEtcd() (err error) {
	e.etcd, err = e.run("etcd",
		"--name=one", "--data-dir="+filepath.Join(e.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+e.etcdURL(), "--advertise-client-urls="+nowhere,
		"--listen-peer-urls=unix://"+filepath.Join(e.dir, "peers.sock"), "--initial-advertise-peer-urls="+nowhere,
		"--initial-cluster=one="+nowhere)
	return err
}

func (e *Env) etcdURL() string { return "unix://" + filepath.Join(e.dir, "etcd.sock") }

// auditPolicy records each request and its sender, without bodies and without the apiserver's own requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    users: ["system:apiserver"]
  - level: Metadata
`

// startAPIServer starts the apiserver and waits until it is ready.
func (e *Env) startAPIServer() error {
	file := func(name string) string { return filepath.Join(e.dir, name) }
	if err := os.WriteFile(file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("kubeenv: %w", err)
	}
	var err error
	e.apiserver, err = e.run("kube-apiserver",
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", e.port.number),
		"--permit-port-sharing", // with the socket that reserves the port
		"--etcd-servers="+e.etcdURL(),
		"--tls-cert-file="+file("tls.crt"), "--tls-private-key-file="+file("tls.key"), "--client-ca-file="+file("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer="+issuer, "--service-account-key-file="+file("service-accounts.crt"),
		"--service-account-signing-key-file="+file("service-accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
		"--audit-policy-file="+file("audit-policy.yaml"), "--audit-log-path="+e.auditLog(),
		"--audit-log-format=json", "--audit-log-mode=blocking-strict", "--audit-log-maxsize=4096",
	)
	if err != nil {
		return err
	}
	return e.awaitReady()
}

const issuer = "https://kubernetes.default.svc.cluster.local"

// awaitReady waits until /readyz says ok. The error has the end of the log.
func (e *Env) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client := e.clients.Discovery().RESTClient()
	for {
		_, err := client.Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		for name, process := range map[string]*child.Process{"etcd": e.etcd, "kube-apiserver": e.apiserver} {
			if process.Ended() {
				return fmt.Errorf("kubeenv: %s ended (%v); the end of its log:\n%s", name, process.State(), e.tail(name))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kubeenv: the apiserver is not ready after %v: %w; the end of its log:\n%s",
				startTimeout, err, e.tail("kube-apiserver"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tail returns the end of a log, for error messages.
func (e *Env) tail(name string) string {
	const lines = 15
	text, err := os.ReadFile(e.logOf(name))
	if err != nil {
		return err.Error()
	}
	return child.Tail(string(text), lines)
}

// kill ends all processes at once: an environment has no data worth a flush.
func (e *Env) kill() error {
	var errs []error
	for _, process := range []*child.Process{e.apiserver, e.etcd} {
		if process != nil {
			errs = append(errs, process.Kill())
		}
	}
	return errors.Join(errs...)
}
