// Package e2evllm tests Weir as a black box before a real engine: vLLM on CPU with a tiny model of random weights, a
// real Envoy with the first-token gate, the real epp binary, the real openai and anthropic clients. `make e2e-vllm`
// runs it, behind the build tag e2evllm, and keeps its results in docs/e2e-vllm.md; it is no part of `make test`.
//
// Beyond test/integration it shows facts that simulators lack: the waits of other requests at a real scheduler, the
// time until it forgets an aborted request, the form of its answers. Therefore time decides here, and figures are kept
// from a quiet machine only: the tests look at the load before the start, and at the others' use of the processors
// meanwhile.
package e2evllm
