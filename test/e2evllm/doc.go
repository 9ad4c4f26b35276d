// Package e2evllm tests Weir as a black box before a real engine: vLLM on CPU with a tiny model of random weights, a
// real Envoy with the first-token gate, the real epp binary, the real openai and anthropic clients. `make e2e-vllm`
// runs it, behind the build tag e2evllm, and keeps its results in docs/e2e-vllm.md; it is no part of `make test`.
//
// It shows facts that the simulators of test/integration lack: other requests' waits at a real scheduler, the time
// until the engine forgets an aborted request, and the form of its answers. So its results depend on time, and only
// figures from a quiet machine are kept: the tests check the machine's load before the start, and other processes' CPU
// use meanwhile.
package e2evllm
