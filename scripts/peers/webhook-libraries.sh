#!/usr/bin/env bash
# Installs the libraries with which merchants verify webhooks, Standard Webhooks' own for Python (PyPI) and Go (its module), pinned by the
# files beside this script, and prints the folder with the programs over them: check-python and check-go read {"secret", "headers", "body"}
# from standard input and exit with 0 when they accept it; receiver-go is docs/receivers/receiver.go. The one for Node is a package of this
# repository.
# Needs Python 3 with venv (Debian: python3-venv, installed here when this is root), a Go compiler (go.sh finds or fetches one), flock. Safe
# to run again, and side by side.
#
#   LIBRARIES=$(scripts/peers/webhook-libraries.sh); "$LIBRARIES/check-go" < webhook.json
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to install again even if the cache has one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pinned=$here/webhook-libraries
mkdir -p "${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/webhook-libraries"
folder=$(cd "${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/webhook-libraries" && pwd)
# one folder for each state of the lists: a virtual environment cannot be moved, so it is made where it stays
receiver=$here/../../docs/receivers/receiver.go
home=$folder/$(cat "$pinned"/* "$receiver" | sha256sum | cut -c 1-12)

# the mark is written last: an installation that was broken off has none
works() { [ -e "$home/installed" ]; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$home"; exit 0; }

exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$home"; exit 0; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! python3 -c 'import ensurepip' >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || { echo "webhook-libraries: python3-venv is needed" >&2; exit 1; }
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -qq python3-venv >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; exit 1; }
fi
go=$("$here/go.sh")
rm -rf "$home"
mkdir -p "$home/go"
cp "$pinned"/go.mod "$pinned"/go.sum "$pinned"/main.go "$home/go"
cp "$pinned"/check.py "$home"
echo "webhook-libraries: installing (some seconds the first time)" >&2
{
  python3 -m venv "$home/venv" &&
    "$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$pinned/requirements.txt" &&
    (cd "$home/go" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -buildvcs=false -trimpath -o "$home/check-go" .) &&
    (cd "$here/../../docs/receivers" && CGO_ENABLED=0 GOWORK=off GO111MODULE=off "$go" build -buildvcs=false -trimpath -o "$home/receiver-go" receiver.go)
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; rm -rf "$home"; exit 1; }
printf '#!/bin/sh\nexec "%s/venv/bin/python" "%s/check.py"\n' "$home" "$home" >"$home/check-python"
chmod 755 "$home/check-python"
touch "$home/installed"
echo "$home"
