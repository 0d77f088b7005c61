#!/usr/bin/env bash
# Puts a real bitcoind (Bitcoin Knots, package of Debian sid) into a cache
# folder and prints the path of a wrapper executable on standard output.
# Nothing is installed into the system: own apt lists, own cache, own C library.
# Needs: Debian (amd64), apt, dpkg-deb, flock. No root needed. Safe to run again, and side by side.
#
#   BITCOIND=$(scripts/peers/bitcoind.sh)
#   "$BITCOIND" -version            # bitcoin-cli and bitcoin-tx lie beside it
#
# BURSAR_PEERS_CACHE  cache folder (default ~/.cache/bursar-peers)
# BURSAR_PEERS_FRESH  set to 1 to fetch again even if the cache has one
set -euo pipefail

cache=${BURSAR_PEERS_CACHE:-$HOME/.cache/bursar-peers}
home=$cache/bitcoind
bin=$home/bin/bitcoind

works() { [ -x "$bin" ] && "$bin" -version >/dev/null 2>&1; }

if [ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works; then echo "$bin"; exit 0; fi

mkdir -p "$home"
home=$(cd "$home" && pwd); bin=$home/bin/bitcoind
exec 9>"$home/.lock"; flock 9
if [ "${BURSAR_PEERS_FRESH:-0}" != 1 ] && works; then echo "$bin"; exit 0; fi

say() { echo "bitcoind: $*" >&2; }
tmp=$(mktemp -d "$home/.new.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp"/apt/{lists/partial,cache/archives/partial,state,none} "$tmp/debs" "$tmp/root"

# The mirror is the one this system's apt already uses for its own main archive.
code=$(. /etc/os-release; echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
  awk -v c="$code" '$1==c && $2=="main" {print $3; exit}')
[ -n "$mirror" ] || { say "no apt source for $code main found"; exit 1; }
ring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$ring" ] || { say "package debian-archive-keyring is missing"; exit 1; }

printf 'deb [arch=amd64 signed-by=%s] %s sid main\n' "$ring" "$mirror" >"$tmp/apt/sources.list"
: >"$tmp/apt/status"                       # an empty system: apt lists every library that is needed
cat >"$tmp/apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$tmp/apt/sources.list";
Dir::Etc::sourceparts "$tmp/apt/none";
Dir::Etc::preferencesparts "$tmp/apt/none";
Dir::Etc::preferences "$tmp/apt/none/none";
Dir::State "$tmp/apt/state";
Dir::State::lists "$tmp/apt/lists";
Dir::State::status "$tmp/apt/status";
Dir::Cache "$tmp/apt/cache";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::Contents-deb;
CONF

say "reading the package list of Debian sid"
apt-get -q -c "$tmp/apt/apt.conf" update >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
apt-get -q -c "$tmp/apt/apt.conf" -s install bitcoin-knots >"$tmp/plan" 2>"$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
# debconf and systemd are only there for the package's own system user
mapfile -t packages < <(awk '$1=="Inst"{print $2}' "$tmp/plan" |
  grep -vE '^(debconf|systemd|libsystemd-shared|systemd-.*|openssl-provider-legacy|libc-gconv-modules-extra|libmount1|libblkid1|libselinux1|libpcre2-8-0)$')
[ "${#packages[@]}" -gt 5 ] || { say "apt made no plan for bitcoin-knots"; exit 1; }

say "fetching ${#packages[@]} packages"
(cd "$tmp/debs" && apt-get -q -c "$tmp/apt/apt.conf" download "${packages[@]}") >"$tmp/log" 2>&1 ||
  { cat "$tmp/log" >&2; exit 1; }
for d in "$tmp"/debs/*.deb; do dpkg-deb -x "$d" "$tmp/root"; done
version=$(dpkg-deb -f "$tmp"/debs/bitcoin-knots_*.deb Version)

root=$tmp/root
rm -rf "$root/usr/share" "$root/etc" "$root/var" "$root/usr/lib/systemd" "$root/usr/bin/bitcoin-qt"
(cd "$tmp/debs" && ls *.deb) >"$root/packages.txt"
ld=
for f in usr/lib64/ld-linux-x86-64.so.2 lib64/ld-linux-x86-64.so.2 usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2; do
  if [ -e "$root/$f" ]; then ld=$f; break; fi
done
[ -n "$ld" ] || { say "no dynamic loader among the packages"; exit 1; }

final=$home/$version
rm -rf "$final"; mv "$root" "$final"
mkdir -p "$home/bin"
for p in bitcoind bitcoin-cli bitcoin-tx bitcoin-util bitcoin-wallet; do
  [ -e "$final/usr/bin/$p" ] || continue
  cat >"$tmp/wrap" <<WRAP
#!/bin/sh
r='$final'
exec "\$r/$ld" --library-path "\$r/usr/lib/x86_64-linux-gnu:\$r/lib/x86_64-linux-gnu" "\$r/usr/bin/$p" "\$@"
WRAP
  chmod 755 "$tmp/wrap"; mv -f "$tmp/wrap" "$home/bin/$p"
done
works || { say "the fetched bitcoind does not start:"; "$bin" -version >&2 || true; exit 1; }
say "ready: $("$bin" -version | head -n 1) ($version)"
echo "$bin"
