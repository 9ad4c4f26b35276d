# Weir. `make` lists the targets; `make test` and then `make test-cluster` are exactly what continuous integration runs.

SHELL := /bin/bash
.DEFAULT_GOAL := help

GO            ?= go
# Compilers and linkers live for a second or two. With fewer collections of their garbage they take a fourth less
# processor time, and up to 600 MB; what they make is the same. Tests and programs keep Go's default.
export GOFLAGS := $(shell $(GO) env GOFLAGS) '-toolexec=env GOGC=400'
CACHE         := .cache
# The pure packages: no goroutine, no lock (internal/purity), so nothing for the race detector.
CORE          := ./pkg/body ./pkg/decision ./pkg/dispatch ./pkg/estimate ./pkg/fairqueue ./pkg/invalid ./pkg/quota ./pkg/request \
                 ./pkg/scheduling ./pkg/stock ./pkg/usage ./internal/names
# Those with goroutines that are not built upon the clients of Kubernetes: the race detector has every dependency
# compiled anew, and these clients take longest (ADR 0108).
RACE          := ./pkg/flowcontrol ./pkg/metering ./pkg/extproc/... ./pkg/recording ./pkg/datastore ./internal/child ./internal/envoyrun \
                 ./internal/envoystream ./internal/memnet ./internal/modelsim/... ./internal/scene
GOLANGCI_V    := v2.15.0
GOLANGCI      := $(CACHE)/bin/golangci-lint-$(GOLANGCI_V)
VERSION       := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS       := -s -w -X github.com/weir-epp/weir/internal/version.Version=$(VERSION)
# The last version whose leader had a label.
UPGRADE_FROM  ?= f0d390d
# The last version before those that can be released, whose leader publishes itself as this one's does.
VERSION_BEFORE ?= 96869ca3
# The Go that releases are built with, whichever is installed.
GO_MOD        := go$(shell awk '$$1 == "go" { print $$2 }' go.mod)
BENCHFLAGS    ?= -benchtime=300ms -count=5

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## static binaries: bin/epp and bin/weir
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/epp ./cmd/epp
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/weir ./cmd/weir

# Paths in the copy are absolute, so that its Envoys start in any directory.
my-envoy: ## a copy of config/envoy for your own addresses and keys, which git ignores; one that is there stays
	@rm -rf $@.part && mkdir $@.part && cp -r config/envoy/*.yaml config/envoy/auth config/envoy/eds $@.part
	@sed -i 's|config/envoy/|$(CURDIR)/$@/|g' $@.part/*.yaml $@.part/eds/*.yaml && mv $@.part $@

.PHONY: release
release: export WEIR_VERSION := $(if $(filter command,$(firstword $(origin VERSION))),$(value VERSION))
release: ## VERSION=1.2.3: programs, an OCI layout, SBOMs, the chart and their sums, in dist; the same from every clone of a commit
	GOTOOLCHAIN=$(GO_MOD) $(GO) run -C hack/release . make -version "$$WEIR_VERSION" -source '$(CURDIR)' -out '$(CURDIR)/dist'

.PHONY: demo
demo: build envoy ## a flood contained, without Weir and with it; bulk giving way to interactive (80 s)
	ENVOY=$$(hack/envoy.sh) bin/weir demo

.PHONY: test
test: check wire ## without a cluster: lint, purity, race and unit tests, fuzz seeds, the explorer, a real Envoy, the pages

.PHONY: test-cluster
test-cluster: lint-deps depth race-cluster test-kube test-chart test-gateways pages-cluster test-browser observe trace test-release ## more depth, and with a cluster: a real apiserver, the chart, its objects for Envoy Gateway in a real Envoy, the pages about Kubernetes, race tests of its clients; the front page in a real Chromium; dashboards and alerts by a real Prometheus; traces; a release

.PHONY: test-long
test-long: explore random million fuzz every-byte unhappy burst churn upgrade upgrade-before dashboards-check ## the explorer's depths, random machines, a million tenants, fuzzing, odd answers, unhappy requests, large bodies, churn, upgrades

.PHONY: check
check: lint race unit ## lint, purity, vet, race and unit tests, decisions explored; not on the wire

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint with .golangci.yml, go vet among its linters
	GOGC=400 $(GOLANGCI) run ./...

.PHONY: lint-deps
lint-deps: $(GOLANGCI) ## golangci-lint with .golangci-deps.yml: checks that analyse every dependency
	GOGC=400 $(GOLANGCI) run -c .golangci-deps.yml ./...

$(GOLANGCI):
	@mkdir -p $(CACHE)/bin
	GOBIN=$(abspath $(CACHE))/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_V)
	@mv $(CACHE)/bin/golangci-lint $@

.PHONY: race
race: envoy ## unit tests of what has goroutines, under the race detector, with the seeds of its fuzz targets
	ENVOY=$$(hack/envoy.sh) $(GO) test -race -vet=off -timeout 30m $(RACE)

.PHONY: race-cluster
race-cluster: envoy test-kube-assets ## unit tests of all others but the core under the race detector, and of the tests' own apiserver
	ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) $(GO) test -race -vet=off -timeout 30m \
		$$($(GO) list ./... | grep -v -e /test/ | grep -vxF "$$($(GO) list $(CORE) $(RACE))")

.PHONY: unit
unit: envoy ## all other unit tests: of the core with its decisions explored, of the programs, and of recordings
	ENVOY=$$(hack/envoy.sh) $(GO) test -short -vet=off -p 4 -timeout 30m ./pkg/recording \
		$$($(GO) list ./... | grep -v -e /test/ -e /internal/kubeenv$$ | grep -vxF "$$($(GO) list $(RACE))")

.PHONY: explore
explore: ## every sequence of events of a few requests, with whole lives of four, through the decisions
	$(GO) test -timeout 60m -run TestExplore ./pkg/dispatch -explore.whole

.PHONY: depth
depth: ## the core's tests without -short: 60,000 transitions of each scene, all random queues
	$(GO) test -vet=off -timeout 30m ./pkg/dispatch ./pkg/fairqueue

.PHONY: random
random: ## 10,000 random machines, against the properties that a user would state, and changed bytes of a recording (4 minutes on 2 cores)
	$(GO) test -timeout 60m -run TestRandom ./pkg/dispatch -random.runs 10000
	$(GO) test -timeout 60m -run TestChangedByteIsNoticed ./pkg/recording

.PHONY: million
million: ## a million identities
	$(GO) test -timeout 30m -run TestMillionIdentities ./pkg/flowcontrol -identities 1000000

.PHONY: churn
churn: envoy test-kube-assets ## the readiness of 500 pods changes for a minute
	ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) $(GO) test -count=1 -timeout 30m -run 'TestManyPodsChange$$' \
		./test/kube -kube.churn=1m

.PHONY: upgrade
upgrade: envoy test-kube-assets tools ## from an earlier version (UPGRADE_FROM=COMMIT) to this one and back, under load; needs the history
	EARLIER=$$(hack/earlier.sh $(UPGRADE_FROM)) && ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) \
		$(GO) test -tags upgrade -count=1 -timeout 30m -v -run TestUpgradeFromAnEarlierVersion ./test/chart -upgrade.from=$$EARLIER

.PHONY: upgrade-before
upgrade-before: envoy test-kube-assets tools ## the same from the version before (VERSION_BEFORE=COMMIT); needs the history
	EARLIER=$$(hack/earlier.sh $(VERSION_BEFORE)) && ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) \
		$(GO) test -tags upgrade -count=1 -vet=off -timeout 30m -run TestUpgradeFromTheVersionBefore ./test/chart -upgrade.from=$$EARLIER

.PHONY: burst
burst: envoy ## 110 bodies of 32 MiB become whole at once, which takes 11 GB of memory; on a quiet machine
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -timeout 30m -v -run TestBurstOfLargeBodies ./test/integration -burst 110

.PHONY: fuzz
fuzz: ## each fuzz target 200,000 executions beyond its seeds, which every test run takes
	hack/fuzz.sh 200000x

.PHONY: wire
wire: envoy openai ## integration, facts and pages, two at a time: much of each is waiting
	ENVOY=$$(hack/envoy.sh) CLIENTS_PYTHON=$$(hack/clients.sh) $(GO) test -count=1 -vet=off -timeout 30m -p 2 -parallel 12 \
		./test/integration ./test/envoyfacts ./test/docs

.PHONY: facts
facts: envoy ## what Weir expects of Envoy, on a real one, without Weir; the shipped configurations
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 20m ./test/envoyfacts

.PHONY: integration
integration: envoy openai ## black box on the wire: real Envoy, real binary, real clients
	ENVOY=$$(hack/envoy.sh) CLIENTS_PYTHON=$$(hack/clients.sh) $(GO) test -count=1 -vet=off -timeout 30m -parallel 12 ./test/integration

.PHONY: every-byte
every-byte: envoy ## five times as many odd answers as in make integration, byte by byte
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 30m -run KeepsEveryByte ./test/integration -more 5

.PHONY: unhappy
unhappy: envoy ## 50,000 requests that end badly in every way, while configuration and endpoints change: all accounts are at 0
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 30m -run 'TestUnhappy$$' ./test/integration -unhappy 50000

.PHONY: test-kube
test-kube: envoy test-kube-assets ## black box on a real apiserver (UPSTREAM_CRDS=DIR: with the published CRDs)
	ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) UPSTREAM_CRDS=$(abspath $(UPSTREAM_CRDS)) \
		$(GO) test -count=1 -vet=off -timeout 30m -parallel 4 ./test/kube

.PHONY: test-chart
test-chart: envoy test-kube-assets tools ## the Helm chart and the kustomize overlays, rendered, and applied to a real apiserver (UPSTREAM_CRDS=DIR)
	ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) UPSTREAM_CRDS=$(abspath $(UPSTREAM_CRDS)) \
		$(GO) test -count=1 -vet=off -timeout 30m ./test/chart

.PHONY: test-gateways
test-gateways: envoy ## what the chart renders for Envoy Gateway, translated by its own command and run by a real Envoy
	@for tool in helm egctl; do hack/tool.sh $$tool >/dev/null || exit; done
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 10m -parallel 8 ./test/gateways

.PHONY: observe
observe: envoy test-kube-assets tools ## the questions of the dashboard and the alerts, each with its fault, by a real Prometheus
	ENVOY=$$(hack/envoy.sh) KUBEBUILDER_ASSETS=$$(hack/kube.sh) \
		$(GO) test -count=1 -vet=off -timeout 20m -parallel 12 ./test/observe

.PHONY: dashboards
dashboards: ## write the chart's dashboards from hack/dashboards; needs npm and node 20
	hack/dashboards.sh

.PHONY: dashboards-check
dashboards-check: ## the chart's dashboards are those that hack/dashboards makes; needs npm and node 20
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && hack/dashboards.sh "$$made" && \
		diff -r "$$made" charts/weir/files/dashboards || { echo 'make dashboards' >&2; exit 1; }

.PHONY: test-kube-assets
test-kube-assets: ## build kube-apiserver and etcd into the cache unless KUBEBUILDER_ASSETS names them (once)
	@hack/kube.sh >/dev/null

.PHONY: tools
tools: ## build helm, promtool, prometheus and kubectl into the cache (once)
	@for tool in helm promtool prometheus kubectl; do hack/tool.sh $$tool >/dev/null || exit; done

.PHONY: pages
pages: envoy ## the commands of README.md and of the pages in docs
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 20m ./test/docs

.PHONY: pages-cluster
pages-cluster: test-kube-assets tools ## those that need a cluster
	KUBEBUILDER_ASSETS=$$(hack/kube.sh) $(GO) test -count=1 -vet=off -timeout 20m ./test/docs/cluster

.PHONY: test-release
test-release: envoy tools $(GOLANGCI) ## a release from two folders: equal sums, a valid layout, its image serves a request; a clone with git
	cd hack/release && GOGC=400 $(abspath $(GOLANGCI)) run -c ../../.golangci.yml . && $(GO) test -count=1 -vet=off .
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 30m ./test/release

.PHONY: test-browser
test-browser: envoy chromium ## the front page of the debug port in a real Chromium
	ENVOY=$$(hack/envoy.sh) CHROMIUM=$$(hack/chromium.sh) $(GO) test -count=1 -vet=off -timeout 10m ./test/browser

.PHONY: screenshot
screenshot: envoy chromium ## the picture of docs/status.md, of a real page
	ENVOY=$$(hack/envoy.sh) CHROMIUM=$$(hack/chromium.sh) $(GO) test -count=1 -run 'TestScreenshot$$' ./test/browser \
		-picture $(CURDIR)/docs/status.png

.PHONY: trace
trace: envoy ## spans of a real Envoy and of Weir in the OTLP receiver of the OpenTelemetry collector
	@hack/tool.sh otlpcollector >/dev/null
	ENVOY=$$(hack/envoy.sh) $(GO) test -count=1 -vet=off -timeout 10m ./test/trace

.PHONY: e2e-vllm
e2e-vllm: envoy openai ## a real vLLM on the CPU (6 GB in .cache), on a quiet machine: writes docs/e2e-vllm.md
	VLLM_VENV=$$(hack/vllm.sh) && export VLLM_VENV && ENVOY=$$(hack/envoy.sh) CLIENTS_PYTHON=$$(hack/clients.sh) \
		$(GO) test -tags e2evllm -count=1 -timeout 40m -v ./test/e2evllm -args -out $(CURDIR)/docs/e2e-vllm.md

.PHONY: bench
bench: envoy build ## benchmarks: all of pkg, with ratios to each one's first row, through Envoy beside a no-op processor, and of usage
	set -o pipefail; $(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./pkg/... | $(GO) run ./hack/benchratios
	ENVOY=$$(hack/envoy.sh) bin/weir bench proxy
	ENVOY=$$(hack/envoy.sh) bin/weir bench usage

.PHONY: bench-flood
bench-flood: envoy build ## a flood beside a quiet tenant: throughput and the quiet one's latency
	ENVOY=$$(hack/envoy.sh) bin/weir bench flood

.PHONY: envoy
envoy: ## fetch Envoy into the cache unless ENVOY names one or PATH has one
	@hack/envoy.sh >/dev/null

.PHONY: openai
openai: ## fetch the Python openai and anthropic clients into the cache
	@hack/clients.sh >/dev/null

.PHONY: chromium
chromium: ## fetch Chromium into the cache unless CHROMIUM names one or PATH has one
	@hack/chromium.sh >/dev/null

.PHONY: clean
clean: ## remove what was built; the cache stays
	rm -rf bin dist dist.part* *.test
