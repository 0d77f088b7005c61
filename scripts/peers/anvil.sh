#!/usr/bin/env bash
# Fetches anvil, an Ethereum node for development (npm, pinned by the package's hash), into the cache folder and prints the path of the
# program itself: the npm wrapper would leave it running when killed. 44 MB, so it is no package of this repository.
# Needs Linux on x86-64, npm, openssl, flock. Safe to run again, and side by side.
#
#   ANVIL=$(scripts/peers/anvil.sh)
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to fetch again even if the cache has one
set -euo pipefail

version=1.7.1
sha512='+XmShybEaxfCrr0OUUZwYEy2OnYZt5pHH9TzBtLv3+VrK0O/ANuNSVEahqNhKHlgX7GRJ59383ofNhxkRWIYTg=='
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || { echo "anvil: pinned for Linux on x86-64 only" >&2; exit 1; }
folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/anvil
home=$folder/$version
bin=$home/package/bin/anvil

works() { [ -x "$bin" ] && "$bin" --version >/dev/null 2>&1; }
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$bin"; exit 0; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works && { echo "$bin"; exit 0; }

work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "anvil: fetching $version" >&2
(cd "$work" && npm pack --silent "@foundry-rs/anvil-linux-amd64@$version") >"$work/name" 2>"$work/log" || { tail -n 20 "$work/log" >&2; exit 1; }
archive=$work/$(tail -n 1 "$work/name")
[ "$(openssl dgst -sha512 -binary "$archive" | base64 -w 0)" = "$sha512" ] || { echo "anvil: the package is not the pinned one" >&2; exit 1; }
tar -xzf "$archive" -C "$work"
rm "$archive"
chmod 755 "$work" "$work/package/bin/anvil"
rm -rf "$home"
mv "$work" "$home"
works || { echo "anvil: the program does not start" >&2; exit 1; }
echo "anvil: $("$bin" --version | head -n 1)" >&2
echo "$bin"
