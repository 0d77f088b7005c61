#!/usr/bin/env bash
# Builds a real LND (lnd and lncli) from its published Go module and prints the path of `lnd`; `lncli` lies beside it. Every dependency is
# pinned by lnd/go.mod and lnd/go.sum beside this script. (LND's own go.mod has `replace` lines, so `go install module@version` is refused.)
# Needs flock and a Go compiler (go.sh finds or fetches one); no C compiler, no root. Safe to run again, and side by side.
#
#   LND=$(scripts/peers/lnd.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to build again even if the cache has one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=v0.21.2-beta
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/lnd/$version
bin=$folder/lnd

runs() { [ -x "$bin" ] && [ -x "$folder/lncli" ] && "$bin" --version >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

go=$("$here/go.sh")
work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$here"/lnd/go.mod "$here"/lnd/go.sum "$here"/lnd/tools.go "$work"
tags='autopilotrpc signrpc walletrpc chainrpc invoicesrpc watchtowerrpc neutrinorpc monitoring peersrpc kvdb_sqlite'
echo "lnd: building $version (up to ten minutes the first time)" >&2
(cd "$work" && mkdir out && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -buildvcs=false -trimpath -ldflags='-s -w' \
  -tags="$tags" -o out/ github.com/lightningnetwork/lnd/cmd/lnd github.com/lightningnetwork/lnd/cmd/lncli) >"$work/log" 2>&1 ||
  { tail -n 40 "$work/log" >&2; exit 1; }
mv -f "$work/out/lnd" "$bin"
mv -f "$work/out/lncli" "$folder/lncli"
runs || { echo "lnd: the built lnd does not run" >&2; exit 1; }
echo "lnd: $("$bin" --version)" >&2
echo "$bin"
