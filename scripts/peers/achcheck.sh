#!/usr/bin/env bash
# Builds `achcheck`, a small program over moov-io/ach (the best-kept reader of NACHA files), from its published Go module and prints the path of
# the executable. Every dependency is pinned by achcheck/go.mod and achcheck/go.sum beside this script.
#
#   ACHCHECK=$(scripts/peers/achcheck.sh); "$ACHCHECK" file.ach
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/peers/go-program.sh
. "$here/go-program.sh"

# the module's version, and what is built from it
version=v1.53.4-$(cat "$here"/achcheck/main.go "$here"/achcheck/go.sum | sha256sum | cut -c1-8)
runs() { "$1" -aba 091000019; }
print_go_program achcheck "$version" 'half a minute' .
