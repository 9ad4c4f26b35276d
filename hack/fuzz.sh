#!/usr/bin/env bash
# Runs every fuzz target of the repository for the given time (default 5s), one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-5s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort | while read -r file; do
	package=./$(dirname "$file")
	for target in $(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //'); do
		go test -run "^$target\$" -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
	done
done
