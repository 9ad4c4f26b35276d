#!/usr/bin/env bash
# Prints a directory with kube-apiserver and etcd, for tests on a real Kubernetes API:
#
#   1. $KUBEBUILDER_ASSETS, if set: taken as it is, after a look whether it has both;
#   2. else .cache/kube/VERSIONS of this repository, for which hack/tool.sh builds what is missing: once, in about 5
#      minutes and 2 GB of memory on two processors.
#
# The directory goes to standard output, everything else to standard error. Running it again costs some milliseconds,
# and two at once wait for each other. Tests that are run without it find the directory as .cache/kube/current.
set -euo pipefail

fail() {
  printf 'hack/kube.sh: %s\n' "$*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root

if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
  for name in kube-apiserver etcd; do
    [[ -x ${KUBEBUILDER_ASSETS}/${name} ]] || fail "KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS} has no ${name}"
  done
  printf '%s\n' "${KUBEBUILDER_ASSETS}"
  exit 0
fi

etcd=$("${root}/hack/tool.sh" etcd)
apiserver=$("${root}/hack/tool.sh" kube-apiserver)

# .cache/tools/NAME/VERSION/NAME: links to both, and last the name by which tests find them.
versions=$(basename "${apiserver%/*}")-etcd-$(basename "${etcd%/*}")
dir=${root}/.cache/kube/${versions}
mkdir -p "${dir}"
ln -sfn "../../tools/${apiserver#*/.cache/tools/}" "${dir}/kube-apiserver"
ln -sfn "../../tools/${etcd#*/.cache/tools/}" "${dir}/etcd"
ln -sfn "${versions}" "${root}/.cache/kube/current"
printf '%s\n' "${dir}"
