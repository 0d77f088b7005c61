#!/usr/bin/env bash
# Builds a real geth from its published Go module and prints the path of the program. Every dependency is pinned by geth/go.mod and geth/go.sum
# beside this script.
#
#   GETH=$(scripts/peers/geth.sh)
set -euo pipefail
# shellcheck source=scripts/peers/go-program.sh
. "$(dirname "${BASH_SOURCE[0]}")/go-program.sh"

runs() { "$1" version; }
print_go_program geth v1.16.8 'some minutes' github.com/ethereum/go-ethereum/cmd/geth
