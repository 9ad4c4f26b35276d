#!/usr/bin/env bash
# Prints the path of a Chromium that runs without a screen, getting it first if there is none:
#
#   1. $CHROMIUM, if set: taken as it is, after a look at its version;
#   2. `chromium-headless-shell`, `chromium` or `google-chrome` on PATH;
#   3. Debian's package chromium-headless-shell with the libraries that this machine lacks, unpacked into the ignored
#      .cache of this repository. apt-get downloads them with lists of its own, so this needs no root and installs
#      nothing. A font comes with it, so that a picture does not depend on the machine's fonts.
#
# The path goes to standard output, everything else to standard error. Running it again costs some milliseconds, and
# two at once wait for each other.
set -euo pipefail

readonly oldest=120 # headless mode as it is today

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly home="${root}/.cache/chromium"
readonly wrapper="${home}/chromium"

fail() {
  printf 'hack/chromium.sh: %s\n' "$*" >&2
  exit 1
}

# new_enough says whether the command $1 runs and is a Chromium of at least our version.
new_enough() {
  local major
  major=$("$1" --version 2>/dev/null | sed -n 's/^[A-Za-z ]*\([0-9][0-9]*\)\..*$/\1/p' | head -n 1)
  [[ -n ${major} ]] && ((major >= oldest))
}

if [[ -n ${CHROMIUM:-} ]]; then
  [[ -x ${CHROMIUM} ]] || fail "CHROMIUM=${CHROMIUM} is not an executable file"
  new_enough "${CHROMIUM}" || fail "CHROMIUM=${CHROMIUM} is no Chromium of version ${oldest} or later that runs here"
  printf '%s\n' "${CHROMIUM}"
  exit 0
fi

for name in chromium-headless-shell chromium google-chrome; do
  if on_path=$(command -v "${name}" 2>/dev/null) && new_enough "${on_path}"; then
    printf '%s\n' "${on_path}"
    exit 0
  fi
done

# packaged prints the wrapper's path, if it is there and runs.
packaged() {
  [[ -x ${wrapper} ]] && new_enough "${wrapper}" && printf '%s\n' "${wrapper}"
}

packaged && exit 0

for command in apt-get dpkg-deb; do
  command -v "${command}" >/dev/null ||
    fail "no Chromium, and no ${command} to get Debian's with: set CHROMIUM to a Chromium of version ${oldest} or later"
done

mkdir -p "${home}"
if command -v flock >/dev/null; then
  exec 9>"${home}.lock"
  flock 9
  packaged && exit 0 # another one was faster
fi

# apt runs apt-get with lists and archives of its own; of the machine's it only reads which packages are installed.
apt() {
  apt-get -qq -o Dir::State="${home}/state" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="${home}/apt" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}

# unpack fetches the packages and unpacks them below the directory $1.
unpack() {
  mkdir -p "${home}/state/lists/partial" "${home}/apt/archives/partial" "$1"
  apt update || return 1
  apt install --download-only --reinstall --no-install-recommends --yes chromium-headless-shell fonts-inter || return 1
  local package
  for package in "${home}"/apt/archives/*.deb; do
    dpkg-deb --extract "${package}" "$1" || return 1
  done
}

# write_wrapper writes the command that runs Chromium with its own libraries and font.
write_wrapper() {
  cat >"${home}/fonts.conf" <<'END'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">root/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
END
  cat >"${wrapper}.part" <<'END'
#!/usr/bin/env bash
home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
libraries=$(printf '%s:' "${home}"/root/{usr/,}lib/*-linux-gnu{,/pulseaudio}) # those that the machine lacked
export LD_LIBRARY_PATH="${libraries%:}" FONTCONFIG_FILE="${home}/fonts.conf"
exec "${home}/root/usr/lib/chromium/chromium-headless-shell" "$@"
END
  chmod +x "${wrapper}.part"
  mv "${wrapper}.part" "${wrapper}"
}

printf 'hack/chromium.sh: getting chromium-headless-shell into .cache/chromium; this takes a minute\n' >&2
rm -rf "${home}/root"
unpack "${home}/root" >&2 9>&- || fail "downloading failed, see above; install the package chromium, or set CHROMIUM to one of version ${oldest} or later"
write_wrapper
rm -rf "${home}/state" "${home}/apt"

packaged || fail "the package was unpacked, but does not run on this machine: $("${wrapper}" --version 2>&1 | head -n 1)"
