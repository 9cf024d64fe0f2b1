#!/bin/sh
# build.sh - build a real kube-apiserver and etcd for the system tests, once
#
# Prints the directory that holds both binaries.  They live outside the tree, named after the hash of what they
# are built from, so that a second run costs nothing.  Exit 77 (a skip) when there is no Go toolchain.
set -eu

here=$(cd "$(dirname "$0")" && pwd)/realserver
go=${GO:-}
for candidate in "$go" go /usr/local/go/bin/go; do
  [ -n "$candidate" ] && go=$(command -v "$candidate") && break
done
[ -n "$go" ] || {
  echo "no Go toolchain: tests use the in-tree double instead of a real kube-apiserver" >&2
  exit 77
}

version=$(sed -n 's,^\tk8s.io/kubernetes v\([0-9.]*\).*,\1,p' "$here/go.mod")
hash=$({ "$go" env GOVERSION GOARCH; cat "$here/go.mod" "$here/go.sum"; } | sha256sum | cut -c1-12)
cache=${GPUB_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpubroker-tests}
out=$cache/kube-$version-$hash

[ "${1:-}" = --where ] && { [ -x "$out/kube-apiserver" ] || exit 1; echo "$out"; exit 0; }

mkdir -p "$cache"
exec 9>"$cache/kube.lock"
flock 9
if [ ! -x "$out/kube-apiserver" ]; then
  tmp=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  pkg=k8s.io/component-base/version
  cd "$here"
  GOFLAGS=-p=2 GOMAXPROCS=${GOMAXPROCS:-2} CGO_ENABLED=0 nice -n 15 "$go" build -trimpath -buildvcs=false \
    -ldflags "-s -w -X $pkg.gitVersion=v$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=$(echo "$version" | cut -d. -f2)" \
    -o "$tmp/" k8s.io/kubernetes/cmd/kube-apiserver go.etcd.io/etcd/server/v3 >&2
  # the package path of etcd's main ends in its major version
  [ -e "$tmp/etcd" ] || mv "$tmp/server" "$tmp/etcd" 2>/dev/null || mv "$tmp/v3" "$tmp/etcd"
  mv "$tmp" "$out"
fi
echo "$out"
