#!/usr/bin/env bash
# Prints the path of a tool that the tests run, building it first from the Go module proxy if it is not in the ignored
# .cache of this repository:
#
#   hack/tool.sh helm
#
# Each tool is the module hack/tools/NAME, apart from Weir's (prometheus shares promtool's): its go.mod names the command
# and pins the version, so a newer one is `go get -tool` there (for kube-apiserver with its replaced modules). The command
# of otlpcollector is in the module itself. What was built is kept by version and by a hash of the module's files.
#
# KUBEBUILDER_ASSETS, if it is a directory that has the tool (as that of setup-envtest has kubectl), comes first.
#
# The path goes to standard output, everything else to standard error. Running it again costs some milliseconds, and
# two at once wait for each other. It builds two packages at a time, for memory's sake (BUILD_JOBS: how many).
set -euo pipefail

fail() {
  printf 'hack/tool.sh: %s\n' "$*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly name=${1:-}
module=${root}/hack/tools/${name}
[[ ${name} != prometheus ]] || module=${root}/hack/tools/promtool
readonly module
[[ -n ${name} && -f ${module}/go.mod ]] ||
  fail "no tool '${name}'; there are: $(cd "${root}/hack/tools" && printf '%s ' *) prometheus"

if [[ -n ${KUBEBUILDER_ASSETS:-} && -x ${KUBEBUILDER_ASSETS}/${name} ]]; then
  printf '%s\n' "${KUBEBUILDER_ASSETS}/${name}"
  exit 0
fi

# The line `tool COMMAND`, or that of a block which ends in the tool's name, and the version of the module that has it.
command=$(awk -v name="/${name}" '$1 == "tool" && $2 != "(" { print $2 }
  $1 == "tool" && $2 == "(" { block = 1; next } $1 == ")" { block = 0 }
  block && substr($1, length($1) - length(name) + 1) == name { print $1 }' "${module}/go.mod")
version=$(awk -v command="${command}/" '$1 == "require" { sub(/^require /, "") }
  index(command, $1 "/") == 1 && $2 ~ /^v/ { print $2; exit }' "${module}/go.mod")
hash=$(cat "${module}"/* | sha256sum | cut -c 1-8)
readonly command version hash
readonly binary=${root}/.cache/tools/${name}/${version:-own}-${hash}/${name}

# build builds the command; a half of one never has the name of the whole.
build() {
  local flags='-s -w' tags=''
  # The module proxy has no tags of git to take the version from, and clients choose their API by it.
  [[ ${name} != kube-apiserver ]] || flags+=" -X k8s.io/component-base/version.gitVersion=${version}"
  [[ ${name} != helm ]] || flags+=" -X helm.sh/helm/v4/internal/version.version=${version}"
  # The clouds' libraries are most of the build of promtool and prometheus, and neither rules nor loopback need them.
  # Without the tag builtinassets Prometheus has no web interface, whose files the module lacks.
  [[ ${module##*/} != promtool ]] || tags=remove_all_sd
  mkdir -p "${binary%/*}"
  (cd "${module}" && CGO_ENABLED=0 GOFLAGS='' GOWORK=off nice -n 5 go build -p "${BUILD_JOBS:-2}" -mod=readonly \
    -trimpath -buildvcs=false -tags "${tags}" -ldflags "${flags}" -o "${binary}.part" "${command}") &&
    mv "${binary}.part" "${binary}"
}

if [[ ! -x ${binary} ]]; then
  mkdir -p "${root}/.cache/tools/${name}"
  exec 9>"${root}/.cache/tools/${name}.lock"
  flock 9
  if [[ ! -x ${binary} ]]; then # else another one was faster
    printf 'hack/tool.sh: building %s %s into .cache/tools; kube-apiserver and egctl take about 5 minutes, others less\n' \
      "${name}" "${version}" >&2
    started=${SECONDS}
    build >&2 9>&- || fail "building ${name} failed; see above"
    printf 'hack/tool.sh: built %s in %d s\n' "${name}" $((SECONDS - started)) >&2
  fi
fi
printf '%s\n' "${binary}"
