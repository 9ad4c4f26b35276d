#!/usr/bin/env bash
# Prints the path of a Python with the real openai and anthropic clients, installing them (pinned) into the
# repository's ignored cache on first use. Safe when two run at once.
set -euo pipefail
cd "$(dirname "$0")/.."
pins="openai==2.54.0 anthropic==2.11.0"
mkdir -p .cache
exec 9>.cache/clients.lock
flock 9
venv=$PWD/.cache/clients-venv
if [ "$(cat "$venv/pins" 2>/dev/null)" != "$pins" ]; then
	rm -rf "$venv"
	python3 -m venv "$venv" >&2
	# shellcheck disable=SC2086
	"$venv/bin/pip" install --quiet --disable-pip-version-check $pins >&2
	echo "$pins" >"$venv/pins"
fi
echo "$venv/bin/python"
