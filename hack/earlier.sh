#!/usr/bin/env bash
# Prints a directory with an earlier version of Weir, for the tests of an upgrade: its source in src, which has its
# chart, and its program epp, built from it. It needs the history of git that has the commit.
#
#   hack/earlier.sh COMMIT
#
# The directory goes to standard output, everything else to standard error. It is kept in .cache by its commit.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
commit=$(git -C "${root}" rev-parse --verify --quiet "${1:?a commit}^{commit}") || {
  printf 'hack/earlier.sh: no commit %s here; a shallow clone has it after git fetch --unshallow\n' "$1" >&2
  exit 1
}
readonly commit
readonly dir=${root}/.cache/earlier/${commit}

if [[ ! -x ${dir}/epp ]]; then
  mkdir -p "${dir}/src"
  git -C "${root}" archive "${commit}" | tar -x -C "${dir}/src"
  (cd "${dir}/src" && go build -buildvcs=false -o "${dir}/epp.part" ./cmd/epp) >&2
  mv "${dir}/epp.part" "${dir}/epp"
fi
printf '%s\n' "${dir}"
