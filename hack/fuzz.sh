#!/usr/bin/env bash
# Runs every fuzz target of the repository for the given time or number of executions (default 200000x), one
# after the other. A number is safer: a time that ends in the middle of an execution may count as a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-200000x}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort | while read -r file; do
	package=./$(dirname "$file")
	for target in $(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //'); do
		go test -run "^$target\$" -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
	done
done
