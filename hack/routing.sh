#!/usr/bin/env bash
# Prints the tables of docs/routing.md, medians of six seeds, and draws docs/routing.svg: bin/weir with the files of
# config/simulate, and the published formulas of other routers (internal/simulate/peer.go). With a file as argument, Mooncake's conversation trace, it has the columns of that trace too.
# (https://github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl)
set -euo pipefail
cd "$(dirname "$0")/.."
files=config/simulate
configs=()
for name in off-64 prefix-64 locality-64 off-unbounded prefix-unbounded; do configs+=(--config "$files/$name.yaml"); done

table() { # TITLE ARGUMENTS
	echo "## $1"
	shift
	bin/weir simulate "$@" "${configs[@]}" --seeds=6 2>/dev/null | grep -v -e ' tenant-' -e '^─*  ' || true
	echo
}

others() { # TITLE ARGUMENTS: the formulas of other routers, without a queue
	echo "## $1: with first tokens, beside other routers; as shipped"
	shift
	bin/weir simulate "$@" --config "$files/prefix-unbounded.yaml" --peers --first-tokens --seeds=6 2>/dev/null | grep ' all  '
	bin/weir simulate "$@" --profile recommended --seeds=6 2>/dev/null | grep ' all  '
	echo
}

for workload in groups groups-of-tenants hot bursts zipf documents; do
	table "$workload" --workload "$files/$workload.yaml"
done
for workload in hot bursts zipf documents; do
	others "$workload" --workload "$files/$workload.yaml"
done
if [ $# -gt 0 ]; then
	for both in table others; do
		"$both" "conversation, twice as fast" --trace "$1" --speed=2
		"$both" "conversation, three times as fast" --trace "$1" --speed=3
		"$both" "conversation, four times as fast, 3M KV tokens" --trace "$1" --speed=4 --kv-tokens=3000000
	done
fi
pictured=("${configs[@]:0:6}" --config "$files/prefix-unbounded.yaml") # there is room for four
bin/weir simulate --workload "$files/groups-of-tenants.yaml" "${pictured[@]}" --plots=docs/routing.svg >/dev/null 2>&1
