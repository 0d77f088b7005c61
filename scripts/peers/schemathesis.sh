#!/usr/bin/env bash
# Installs schemathesis and openapi-python-client (PyPI, everything pinned by schemathesis/requirements.txt beside this script) into a virtual
# environment of the cache folder and prints the path of the command schemathesis; openapi-python-client and python lie beside it.
# Needs Python 3.10 or newer with venv (Debian: python3-venv, installed here when this is root), flock. Safe to run again, and side by side.
#
#   SCHEMATHESIS=$(scripts/peers/schemathesis.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to install again even if the cache has one
set -euo pipefail

pinned=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/schemathesis/requirements.txt
mkdir -p "${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/schemathesis"
folder=$(cd "${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/schemathesis" && pwd)
# one environment for each state of the list: an environment cannot be moved, so it is made where it stays
home=$folder/$(sha256sum "$pinned" | cut -c 1-12)
bin=$home/bin/schemathesis

# the mark is written last: an installation that was broken off has none
works() { [ -e "$home/installed" ] && "$bin" --version >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$bin"; exit 0; }

exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$bin"; exit 0; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! python3 -c 'import ensurepip' >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || { echo "schemathesis: python3-venv is needed" >&2; exit 1; }
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -qq python3-venv >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; exit 1; }
fi
rm -rf "$home"
echo "schemathesis: installing (half a minute the first time)" >&2
{ python3 -m venv "$home" && "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$pinned"; } >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; rm -rf "$home"; exit 1; }
touch "$home/installed"
works || { echo "schemathesis: the installed command does not start" >&2; exit 1; }
echo "schemathesis: $("$bin" --version)" >&2
echo "$bin"
