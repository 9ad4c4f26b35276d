#!/usr/bin/env bash
# Compares what a request costs the controller (BenchmarkLifecycle*) here and at an earlier commit: the instructions, and
# the misses of a simulated first and last cache, for each row as here/then. Neither depends on how busy the machine is
# (ADR 0049). It needs valgrind and the history of git that has the commit, and takes 6 minutes.
#
#   hack/lifecycle.sh COMMIT [ROWS]
#
# ROWS is a regular expression of go test -bench; without it all rows are compared. The garbage collector is off.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
commit=$(git -C "${root}" rev-parse --verify --quiet "${1:?a commit}^{commit}") || {
  printf 'hack/lifecycle.sh: no commit %s here; a shallow clone has it after git fetch --unshallow\n' "$1" >&2
  exit 1
}
command -v valgrind >/dev/null || { printf 'hack/lifecycle.sh: no valgrind in PATH\n' >&2; exit 1; }
readonly root commit rows=${2:-.}
work=$(mktemp -d)
readonly work
trap 'rm -rf "${work}"' EXIT

# build SIDE builds the benchmarks of the sources in $work/SIDE.
build() {
  sed -i 's/debug\.SetGCPercent(400)/debug.SetGCPercent(-1)/' "${work}/$1/pkg/flowcontrol/bench_test.go"
  (cd "${work}/$1" && go test -c -vet=off -o "${work}/$1.test" ./pkg/flowcontrol)
}

# cost SIDE ROW prints instructions and misses of a row's 20,000 requests.
cost() {
  GODEBUG=asyncpreemptoff=1 GOGC=off GOMAXPROCS=1 valgrind --tool=cachegrind --cache-sim=yes \
    --cachegrind-out-file=/dev/null "${work}/$1.test" -test.run '^$' -test.bench "$2" -test.benchtime 20000x 2>&1 |
    sed -nE 's/^==[0-9]+== (I +refs|D1 +misses|LL misses): +([0-9,]+).*/\2/p' | tr -d , | tr '\n' ' '
}

mkdir "${work}/here" "${work}/then"
git -C "${root}" archive "${commit}" | tar -x -C "${work}/then"
(cd "${root}" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar -c --ignore-failed-read) |
  tar -x -C "${work}/here"
build then
build here
printf '%-42s %12s %10s %10s\n' row instructions first last
while read -r row; do
  [[ ${row} =~ ${rows} ]] || continue
  printf '%s %s %s\n' "${row//\$/}" "$(cost then "${row}")" "$(cost here "${row}")" |
    awk '{printf "%-42s %12.2f %10.2f %10.2f\n", $1, $5/$2, $6/$3, $7/$4}'
done <<'ROWS'
Lifecycle$/free$
Lifecycle$/waiters=5000/flows=1$
Lifecycle$/waiters=5000/flows=5000$
Lifecycle$/idle=5000/busy=1$
LifecycleUsage$/free$
LifecycleUsage$/waiters=5000/flows=1$
LifecycleUsage$/waiters=5000/flows=5000$
LifecycleTiers$/free$
LifecycleTiers$/waiters=5000/flows=4$
LifecycleTiers$/waiters=5000/flows=5000$
ROWS
