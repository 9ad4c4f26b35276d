#!/usr/bin/env bash
# Writes the dashboards of the chart into a directory, by default charts/weir/files/dashboards:
#
#   hack/dashboards.sh [DIRECTORY]
#
# hack/dashboards has the questions and their queries, and package-lock.json the version of Grafana's builders for
# dashboards, which npm fetches once into the ignored .cache of this repository. Needs node 20 or newer, with npm.
set -euo pipefail

fail() {
  printf 'hack/dashboards.sh: %s\n' "$*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly source=${root}/hack/dashboards
readonly out=${1:-${root}/charts/weir/files/dashboards}

command -v npm >/dev/null || fail 'there is no npm; install node 20 or newer with npm (Debian: apt-get install nodejs npm)'
[[ $(node -p 'Number(process.versions.node.split(".")[0]) >= 20') == true ]] || fail "node is $(node --version), and 20 is needed"

modules=${root}/.cache/dashboards/$(cat "${source}/package.json" "${source}/package-lock.json" | sha256sum | cut -c 1-8)
readonly modules
mkdir -p "${modules}"
exec 9>"${modules}.lock"
flock 9
if [[ ! -f ${modules}/complete ]]; then
  cp "${source}/package.json" "${source}/package-lock.json" "${modules}/"
  (cd "${modules}" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 || fail 'npm ci failed; see above'
  touch "${modules}/complete"
fi
NODE_PATH=${modules}/node_modules node "${source}/generate.js" "${out}"
