#!/usr/bin/env bash
# Builds `achcheck`, a small program over moov-io/ach (the best-kept reader of NACHA files), from its published Go module and prints the path of
# the executable. Every dependency is pinned by achcheck/go.mod and achcheck/go.sum beside this script.
# Needs flock and a Go compiler (go.sh finds or fetches one); no C compiler, no root. Safe to run again, and side by side.
#
#   ACHCHECK=$(scripts/peers/achcheck.sh); "$ACHCHECK" file.ach
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to build again even if the cache has one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=v1.53.4-$(cat "$here"/achcheck/main.go "$here"/achcheck/go.sum | sha256sum | cut -c1-8)
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/achcheck/$version
bin=$folder/achcheck

runs() { [ -x "$bin" ] && "$bin" -aba 091000019 >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && runs && { echo "$bin"; exit 0; }

go=$("$here/go.sh")
work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$here"/achcheck/go.mod "$here"/achcheck/go.sum "$here"/achcheck/main.go "$work"
echo "achcheck: building moov-io/ach $version (half a minute the first time)" >&2
(cd "$work" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -buildvcs=false -trimpath -ldflags='-s -w' -o achcheck .) \
  >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
mv -f "$work/achcheck" "$bin"
runs || { echo "achcheck: the built program does not run" >&2; exit 1; }
echo "$bin"
