#!/bin/sh
# The first lines of every npm script: has the host's Node (18 or newer) install what is missing, and then becomes the Node 24 that runs
# everything, so that no process of ours stands between npm and the program. `sh bin/launch.sh start|test|bench|check|simulate|mutate|cli [arguments]`
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
command=${1:-start}
[ $# -eq 0 ] || shift

# what the tests, checks and measurements need is not installed for the service
packages=all flags=
case $command in
  # a supervisor rests: the young half of its heap need not be 32 MB
  start) packages=service program=src/main/start.ts flags='--max-semi-space-size=1 --expose-gc' ;;
  # an API, a worker or a signer that runs alone would keep up to 48 MB for what is young
  cli) packages=service program=src/main/cli.ts flags=--max-semi-space-size=4 ;;
  bench) program=bench/run.ts ;;
  test | check | simulate | mutate) program=bin/$command.mjs ;;
  *)
    echo "launch: unknown command $command; known are start, cli, bench, test, check, simulate, mutate" >&2
    exit 1
    ;;
esac

fresh=
[ -f "$root/node_modules/.package-lock.json" ] || fresh=yes

# what a command prints may be read by a program: only the start talks about the installation on standard output
if [ "$command" = start ]; then exec 4>&1; else exec 4>&2; fi
node=$(node "$root/bin/install.mjs" "$packages" 3>&1 >&4) || exit 1
exec 4>&-

# every process keeps its compiled code, types stripped: the next start loads in half the time and a sixth of the memory less
NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE:-$root/node_modules/.cache/compiled}
PATH=$root/node_modules/.bin:$PATH
export NODE_COMPILE_CACHE PATH
# glibc keeps what a thread of V8 has freed in an arena of that thread: a third of what an idle process held. JavaScript itself is one thread
# and hardly uses malloc, so one arena costs no time.
case $command in start | cli) export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-1}" ;; esac
# shellcheck disable=SC2086
[ "$fresh$command" != yesstart ] || "$node" $flags "$root/$program" --load-only
# shellcheck disable=SC2086
exec "$node" $flags "$root/$program" "$@"
