#!/usr/bin/env bash
# Installs Debian's litecoind (bookworm: 0.21.2.1) and prints the path of the daemon itself.
# (/usr/bin/litecoind, where a package has it, is a wrapper that writes into the home folder: do not use it.)
# Needs Debian and root (or sudo without a password) the first time. Safe to run again.
#
#   LITECOIND=$(scripts/peers/litecoind.sh)
set -euo pipefail

bin=/usr/lib/litecoin/litecoind
works() { [ -x "$bin" ] && "$bin" -version >/dev/null 2>&1; }
if works; then echo "$bin"; exit 0; fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null && sudo -n true 2>/dev/null || { echo "litecoind: root is needed for apt-get install litecoind" >&2; exit 1; }
  as_root=(sudo -n)
fi
log=$(mktemp); trap 'rm -f "$log"' EXIT
wait_lock=(-o DPkg::Lock::Timeout=120)
{ "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${wait_lock[@]}" install -y --no-install-recommends litecoind ||
  { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${wait_lock[@]}" install -y --no-install-recommends litecoind; }
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
works || { echo "litecoind: $bin does not start" >&2; exit 1; }
echo "litecoind: $("$bin" -version | head -n 1)" >&2
echo "$bin"
