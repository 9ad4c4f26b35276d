// Package e2evllm tests Weir as a black box before a real engine: vLLM on CPU with a tiny model of random weights, a
// real Envoy with the first-token gate, the real epp binary, the real openai and anthropic clients. `make e2e-vllm` runs
// it, behind the build tag e2evllm, and keeps what it found in docs/e2e-vllm.md; it is no part of `make test`.
//
// Beyond test/integration it shows facts that simulators lack: how long a real scheduler makes others wait, when it
// forgets a request that was aborted, what its answers look like. Therefore time decides here, and figures are kept from
// a quiet machine only: the load before the start and what others used of the processors meanwhile are looked at.
package e2evllm
