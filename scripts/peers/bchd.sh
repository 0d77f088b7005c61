#!/usr/bin/env bash
# Builds a real bchd (Bitcoin Cash node of gcash) from its published Go module and prints the path of the executable. Every dependency is
# pinned by bchd/go.mod and bchd/go.sum beside this script. (`go install module@version` would ask for a list of all versions.)
#
#   BCHD=$(scripts/peers/bchd.sh)
set -euo pipefail
# shellcheck source=scripts/peers/go-program.sh
. "$(dirname "${BASH_SOURCE[0]}")/go-program.sh"

runs() { "$1" --version; }
print_go_program bchd v0.22.2 'a minute or two' github.com/gcash/bchd
