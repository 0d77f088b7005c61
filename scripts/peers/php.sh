#!/usr/bin/env bash
# Prints the path of PHP (8.1 or newer), in which docs/receivers/receiver.php is run: the one in PATH, else Debian's package php-cli,
# installed here when this is root. Safe to run side by side.
#
#   PHP=$(scripts/peers/php.sh)
set -euo pipefail

suits() { command -v php >/dev/null && php -r 'exit(PHP_VERSION_ID >= 80100 ? 0 : 1);'; }
suits && { command -v php; exit 0; }

mkdir -p "${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}"
exec 9>"${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/.php.lock"
flock 9
suits && { command -v php; exit 0; }

[ "$(id -u)" = 0 ] || { echo "php: PHP 8.1 or newer is needed (Debian: php-cli)" >&2; exit 1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends php-cli >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; exit 1; }
suits || { echo "php: the installed PHP is too old, or does not run" >&2; exit 1; }
command -v php
