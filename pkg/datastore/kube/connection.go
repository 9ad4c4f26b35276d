package kube

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// Connect returns the configuration for reaching the apiserver: from the kubeconfig file, or if the path is empty from
// $KUBECONFIG, the pod's service account or the user's own file, in this order.
func Connect(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return cfg, nil
}

// NewScheme returns the types that Weir reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, fmt.Errorf("kube: scheme: %w", err)
	}
	if err := kubeapi.AddToScheme(s); err != nil {
		return nil, fmt.Errorf("kube: scheme: %w", err)
	}
	return s, nil
}

var logging sync.Once

// SetLogger makes the libraries log to log. Only the first call has an effect, since their loggers are global.
func SetLogger(log logr.Logger) {
	logging.Do(func() {
		ctrl.SetLogger(log)
		klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	})
}
