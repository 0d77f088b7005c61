# Sourced by the scripts of the peers that are built from their published Go modules (bchd, lnd, geth, achcheck): what is the same for each.
# Needs flock and a Go compiler (go.sh finds or fetches one); no C compiler, no root. Safe to run again, and side by side.
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to build again even if the cache has one

# Builds the Go module in the folder NAME beside this script, whose go.mod and go.sum pin every dependency, and prints the path of the program
# NAME in the cache. VERSION names its folder there, HOW_LONG tells who waits; the rest are arguments of `go build`, packages last.
# `runs PATH`, which the caller defines, tries a program.
print_go_program() {
  local name=$1 version=$2 how_long=$3
  shift 3
  local here folder bin go work
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  folder=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}/$name/$version
  bin=$folder/$name
  is_there() { [ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && [ -x "$bin" ] && runs "$bin" >/dev/null 2>&1; }
  is_there && { echo "$bin"; return; }

  mkdir -p "$folder"
  exec 9>"$folder/.lock"
  flock 9
  is_there && { echo "$bin"; return; }

  go=$("$here/go.sh")
  work=$(mktemp -d "$folder/.new.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  cp "$here/$name"/go.mod "$here/$name"/go.sum "$here/$name"/*.go "$work"
  mkdir "$work/out"
  echo "$name: building $version ($how_long the first time)" >&2
  (cd "$work" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -buildvcs=false -trimpath -ldflags='-s -w' -o out/ "$@") \
    >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; return 1; }
  mv -f "$work"/out/* "$folder"
  runs "$bin" >&2 || { echo "$name: the built program does not run" >&2; return 1; }
  echo "$bin"
}
