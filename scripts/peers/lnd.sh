#!/usr/bin/env bash
# Builds a real LND (lnd and lncli) from its published Go module and prints the path of `lnd`; `lncli` lies beside it. Every dependency is
# pinned by lnd/go.mod and lnd/go.sum beside this script. (LND's own go.mod has `replace` lines, so `go install module@version` is refused.)
#
#   LND=$(scripts/peers/lnd.sh)
set -euo pipefail
# shellcheck source=scripts/peers/go-program.sh
. "$(dirname "${BASH_SOURCE[0]}")/go-program.sh"

tags='autopilotrpc signrpc walletrpc chainrpc invoicesrpc watchtowerrpc neutrinorpc monitoring peersrpc kvdb_sqlite'
runs() { [ -x "$(dirname "$1")/lncli" ] && "$1" --version; }
print_go_program lnd v0.21.2-beta 'up to ten minutes' -tags="$tags" github.com/lightningnetwork/lnd/cmd/lnd github.com/lightningnetwork/lnd/cmd/lncli
