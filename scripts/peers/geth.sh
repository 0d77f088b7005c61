#!/usr/bin/env bash
# Builds a real geth from its published Go module and prints the path of the program. Every dependency is pinned by geth/go.mod and geth/go.sum
# beside this script. Needs flock and a Go compiler (go.sh finds or fetches one); no C compiler, no root. Safe to run again, and side by side.
#
#   GETH=$(scripts/peers/geth.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to build again even if the cache has one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=v1.16.8
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/geth/$version
bin=$folder/geth

runs() { [ -x "$bin" ] && "$bin" version >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

go=$("$here/go.sh")
work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$here"/geth/go.mod "$here"/geth/go.sum "$here"/geth/tools.go "$work"
echo "geth: building $version (some minutes the first time)" >&2
(cd "$work" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -buildvcs=false -trimpath -ldflags='-s -w' -o geth \
  github.com/ethereum/go-ethereum/cmd/geth) >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
mv -f "$work/geth" "$bin"
runs || { echo "geth: the built geth does not run" >&2; exit 1; }
echo "geth: $("$bin" version | sed -n 's/^Version: //p')" >&2
echo "$bin"
