#!/usr/bin/env bash
# Builds a real bchd (Bitcoin Cash node of gcash) from its published Go module and prints the path of the executable. Every dependency is
# pinned by bchd/go.mod and bchd/go.sum beside this script. (`go install module@version` would ask for a list of all versions.)
# Needs flock and a Go compiler (go.sh finds or fetches one); no C compiler, no root. Safe to run again, and side by side.
#
#   BCHD=$(scripts/peers/bchd.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to build again even if the cache has one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=v0.22.2
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/bchd/$version
bin=$folder/bchd

runs() { [ -x "$bin" ] && "$bin" --version >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

go=$("$here/go.sh")
work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$here"/bchd/go.mod "$here"/bchd/go.sum "$here"/bchd/tools.go "$work"
echo "bchd: building $version (a minute or two the first time)" >&2
(cd "$work" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -buildvcs=false -trimpath -ldflags='-s -w' -o bchd \
  github.com/gcash/bchd) >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
mv -f "$work/bchd" "$bin"
runs || { echo "bchd: the built bchd does not run" >&2; exit 1; }
echo "bchd: $("$bin" --version)" >&2
echo "$bin"
