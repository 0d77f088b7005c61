#!/usr/bin/env bash
# Installs openapi-typescript (npm, everything pinned by openapi-typescript/package-lock.json beside this script) into the cache folder and
# prints the path of its command. It wants a TypeScript of its own (5.x), so it is no package of this repository.
# Needs npm, flock. Safe to run again, and side by side.
#
#   OPENAPI_TYPESCRIPT=$(scripts/peers/openapi-typescript.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to install again even if the cache has one
set -euo pipefail

pinned=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/openapi-typescript
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/openapi-typescript
home=$folder/$(sha256sum "$pinned/package-lock.json" | cut -c 1-12)
bin=$home/node_modules/.bin/openapi-typescript

works() { [ -x "$bin" ] && "$bin" --version >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$bin"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$bin"; exit 0; }

work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$pinned/package.json" "$pinned/package-lock.json" "$work"
echo "openapi-typescript: installing" >&2
(cd "$work" && npm ci --silent --ignore-scripts --no-audit --no-fund) >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
rm -rf "$home"
mv "$work" "$home"
chmod 755 "$home"
works || { echo "openapi-typescript: the installed command does not start" >&2; exit 1; }
echo "openapi-typescript: $("$bin" --version)" >&2
echo "$bin"
