#!/usr/bin/env bash
# Prints the tables of docs/fairness.md and draws docs/fairness.svg: bin/weir with the files of config/simulate/fairness,
# medians of 20 seeds (SEEDS), a benchmark of poppers, and what Weir costs beside a no-op. Five minutes on two quiet cores.
# `hack/fairness.sh simulations` is the first part alone: a minute, the same figures on any machine.
set -euo pipefail
cd "$(dirname "$0")/.."
files=config/simulate/fairness
seeds=${SEEDS:-20}
varied=$(mktemp -d)
trap 'rm -r "$varied"' EXIT

table() { # TITLE WORKLOAD ARGUMENTS
	echo "## $1"
	local workload=$2
	shift 2
	bin/weir simulate --service --workload "$files/$workload.yaml" --seeds="$seeds" "$@" 2>/dev/null
	echo
}

bound() { # NAME BOUND: configuration vtc with another bound
	sed "s/slotsPerBackend: 20/slotsPerBackend: $2/" "$files/vtc.yaml" >"$varied/$1.yaml"
	bounds+=(--config "$varied/$1.yaml")
}

for workload in overload eight weighted onoff poisson shift; do
	drr=drr
	[ $workload = weighted ] && drr=drr-weighted
	table "$workload" $workload --config $files/fcfs.yaml --config $files/$drr.yaml --config $files/wfq.yaml --config $files/fairshare.yaml --estimates=within-50%
	table "$workload, vtc" $workload --config $files/vtc.yaml --estimates=within-50%,exact,learned,streamed,late
done

bounds=()
for n in 5 10 15 20 25 30 40; do bound "$n-in-flight" "$n"; done
table "in flight before an engine of 20 slots" overload "${bounds[@]}" --estimates=within-50%

bounds=()
for n in auto 20 10 64; do bound "slots-$n" "$n"; done
table "dynamic sizing" overload "${bounds[@]}" --estimates=within-50%
table "dynamic sizing, short answers beside long ones" poisson "${bounds[@]}" --estimates=within-50%

echo "## a flood before a vLLM: seconds to the answer of the other tenant, and answers of both per second"
bin/weir simulate --json --seeds="$seeds" --workload $files/flood.yaml --config $files/alone.yaml --config $files/bound-10.yaml \
	2>/dev/null | python3 -c '
import json, sys
for run in json.load(sys.stdin):
    total = next(f for f in run["flows"] if f["flow"] == "other")["total"]
    print("%-10s median %.3g  p99 %.3g  answers/s %.1f" % (run["name"], total["p50"], total["p99"], run["all"]["answered"] / run["seconds"]))
'

bin/weir simulate --service --workload $files/overload.yaml --plots=docs/fairness.svg --estimates=within-50% \
	--config $files/fcfs.yaml --config $files/drr.yaml --config $files/wfq.yaml --config $files/vtc.yaml >/dev/null 2>&1

[ "${1:-}" = simulations ] && exit
echo
go test -run '^$' -bench 'Poppers$' -benchtime=200000x -count=3 ./pkg/flowcontrol | grep ^Benchmark
ENVOY=$(hack/envoy.sh) bin/weir bench proxy --concurrency=1,16,64,256 --rounds=3 --length=1s
