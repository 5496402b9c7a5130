#!/usr/bin/env bash
# Builds stand-ins for the base images from the distribution's packages, for
# machines that have a container engine but cannot pull. See README.md.
#
#   test/images/build.sh [postgres|pubsub|golang|prometheus]...    (default: all four)
#
# Progress goes to stderr; stdout gets the shell assignments that make the
# compose file, the Dockerfile and the tests use what was built:
#
#   eval "$(test/images/build.sh)"
set -euo pipefail

# An older Go fetches the one that go.mod asks for, whatever the machine's default is.
export GOTOOLCHAIN=auto

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)

BASE_NAME=${STANDIN_BASE_IMAGE:-eventsv2-standin-base}
POSTGRES_NAME=${STANDIN_POSTGRES_IMAGE:-eventsv2-standin-postgres}
PUBSUB_NAME=${STANDIN_PUBSUB_IMAGE:-eventsv2-standin-pubsub}
GOLANG_NAME=${STANDIN_GO_IMAGE:-eventsv2-standin-golang}
PROMETHEUS_NAME=${STANDIN_PROMETHEUS_IMAGE:-eventsv2-standin-prometheus}
LABEL=eventsv2.standin

say() { echo "images: $*" >&2; }
die() { echo "images: error: $*" >&2; exit 1; }
# cannot is for what this machine lacks; the tests take status 3 for a reason to
# be skipped.
cannot() { echo "images: not on this machine: $*" >&2; exit 3; }

# One build at a time, however many test binaries ask for one.
exec 9<"${BASH_SOURCE[0]}"
flock 9

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

docker version >/dev/null 2>&1 ||
  cannot "the container engine does not answer: start it, or set DOCKER_HOST to where it is"

# is_current NAME HASH: whether the image is there and was made of the same things.
is_current() {
  [ "$(docker image inspect --format "{{index .Config.Labels \"$LABEL\"}}" "$1" 2>/dev/null)" = "$2" ]
}

# hash_of FILE...: one hash over names and contents; stdin is hashed with them.
hash_of() {
  { cat; for f in "$@"; do echo "${f#"$repo"/}"; cat "$f"; done; } | sha256sum | cut -d' ' -f1
}

# build_on NAME ROOT HASH CONTEXT builds CONTEXT on the image ROOT of root_files.
# Everything from outside is in there already, so the build needs no network.
build_on() {
  say "building $1"
  docker build --network=none --build-arg "BASE_IMAGE=$2" --label "$LABEL=$3" -t "$1" "$4" >"$scratch/log" 2>&1 ||
    { tail -n 40 "$scratch/log" >&2; die "the build of $1 failed; its last lines are above"; }
}

# The machine's own apt configuration says where packages come from, whatever the
# format of its files. Other vendors' sources stay out.
apt_sources() {
  command -v apt-get >/dev/null ||
    cannot "stand-ins are made of Debian or Ubuntu packages, and this machine has no apt-get; set POSTGRES_IMAGE, PUBSUB_EMULATOR_IMAGE, GO_IMAGE and PROMETHEUS_IMAGE to images that the engine has or can pull"
  # shellcheck disable=SC2016 # the variables are apt's
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' "Origin: $ORIGIN" | sort -u
}

# distribution finds out what the machine runs: CODENAME and SOURCES.
distribution() {
  # shellcheck disable=SC1091
  . /etc/os-release
  CODENAME=${VERSION_CODENAME:-}
  ORIGIN=Debian
  if [ "${ID:-}" = ubuntu ]; then ORIGIN=Ubuntu; fi
  SOURCES=$(apt_sources)
  grep -q " $CODENAME " <<<"$SOURCES" ||
    cannot "apt knows no packages of $ORIGIN ${CODENAME:-(no VERSION_CODENAME in os-release)}: run apt-get update, and check that the distribution is among apt's sources"
}

# root_files KIND PACKAGES makes the image BASE_NAME:KIND, a minimal root file
# system with the packages. mmdebstrap installs them from outside, several times as
# fast as apt in a container.
root_files() {
  local name=$BASE_NAME:$1 hash
  hash=$( (declare -f root_files; echo "$SOURCES $2") | hash_of /etc/ssl/certs/ca-certificates.crt)
  if is_current "$name" "$hash"; then
    return
  fi
  if ! command -v mmdebstrap >/dev/null; then
    [ "$(id -u)" = 0 ] || cannot "there is no mmdebstrap: apt-get install mmdebstrap, as root"
    say "installing mmdebstrap"
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mmdebstrap >"$scratch/log" 2>&1 ||
      { tail -n 20 "$scratch/log" >&2; die "apt-get install mmdebstrap failed; its last lines are above"; }
  fi
  say "making $name: $ORIGIN $CODENAME with $2"
  # force-unsafe-io: an image needs no fsync per file. Postgres' packages are told
  # to make no cluster, Java's get the folder that minimal systems lack. The
  # certificates are what this machine trusts, since there may be a proxy with its
  # own root between.
  # shellcheck disable=SC2016 # the hooks' $1 is the new root directory
  mmdebstrap --variant=minbase --include="$2" --dpkgopt=force-unsafe-io \
    --essential-hook='mkdir -p "$1/etc/postgresql-common" "$1/usr/share/man/man1"' \
    --essential-hook='echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"' \
    --customize-hook='cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"' \
    "$CODENAME" "$scratch/root.tar" - >"$scratch/log" 2>&1 <<<"$SOURCES" ||
    { tail -n 20 "$scratch/log" >&2; die "mmdebstrap of $CODENAME failed; its last lines are above"; }
  docker import --change "LABEL $LABEL=$hash" --change 'ENV LANG=C.UTF-8' --change 'CMD ["/bin/sh"]' \
    "$scratch/root.tar" "$name" >/dev/null
  rm "$scratch/root.tar"
}

# root_id KIND prints the id of BASE_NAME:KIND, of which images are made.
root_id() { docker image inspect --format '{{.Id}}' "$BASE_NAME:$1"; }

postgres() {
  local hash root
  root_files postgres ca-certificates,postgresql,postgresql-contrib
  root=$(root_id postgres)
  hash=$(hash_of "$here"/postgres/* <<<"$root")
  if is_current "$POSTGRES_NAME" "$hash"; then
    say "$POSTGRES_NAME is current"
  else
    build_on "$POSTGRES_NAME" "$root" "$hash" "$here/postgres"
  fi
  echo "export POSTGRES_IMAGE=$POSTGRES_NAME"
}

# emulator_jar prints the path of the official emulator's jar: the one of the
# installed gcloud, or the one in Google's package if apt has it.
emulator_jar() {
  local root
  if command -v gcloud >/dev/null; then
    root=$(gcloud info --format='value(installation.sdk_root)' 2>/dev/null || true)
    find "${root:-/nonexistent}/platform/pubsub-emulator/lib" -name '*-all.jar' 2>/dev/null | grep -m1 . && return
  fi
  (cd "$scratch" && apt-get download google-cloud-cli-pubsub-emulator && dpkg -x ./*.deb emulator) >&2 &&
    find "$scratch/emulator" -name '*-all.jar' | grep -m1 . && return
  cannot "there is no Pub/Sub emulator on this machine: gcloud components install pubsub-emulator, or add Google's apt source (package google-cloud-cli-pubsub-emulator), or set PUBSUB_EMULATOR_IMAGE"
}

pubsub() {
  local hash jar root
  jar=$(emulator_jar)
  root_files pubsub ca-certificates,default-jre-headless
  root=$(root_id pubsub)
  hash=$( (echo "$root"; sha256sum <"$jar") | hash_of "$here"/pubsub/*)
  if is_current "$PUBSUB_NAME" "$hash"; then
    say "$PUBSUB_NAME is current"
  else
    cp -r "$here/pubsub" "$scratch/pubsub"
    cp "$jar" "$scratch/pubsub/emulator.jar"
    build_on "$PUBSUB_NAME" "$root" "$hash" "$scratch/pubsub"
    rm -rf "$scratch/pubsub"
  fi
  echo "export PUBSUB_EMULATOR_IMAGE=$PUBSUB_NAME"
}

# modules DIR puts the modules of this repository into DIR, as the files that Go's
# module proxies serve, so that a build in a container without a route to one works.
modules() {
  local cache
  cache=$(go env GOMODCACHE)/cache/download
  mkdir "$1"
  # Some that only tests of other modules need may not be to be had.
  { cd "$repo"; go mod download -json 2>/dev/null || true; } | sed -n 's/^\t"Zip": "\(.*\)",$/\1/p' >"$scratch/zips"
  (cd "$cache" && { find . -name '*.mod' -o -name '*.info'; sed "s|^$cache/|./|" "$scratch/zips"; } | tar -c -T -) | tar -x -C "$1"
}

# imported prints the packages outside this repository that its programs are made of.
# Internal ones are built with those that import them.
imported() {
  cd "$repo"
  CGO_ENABLED=0 go list -deps -tags timetzdata \
    -f '{{if or (not .Module) (not .Module.Main)}}{{.ImportPath}}{{end}}' ./cmd/... | grep -vE '(^|/)(internal|vendor)(/|$)'
}

golang() {
  local hash goroot root goproxy packages
  command -v go >/dev/null || cannot "there is no go on PATH: the Go image is made of the machine's own toolchain"
  goroot=$(cd "$repo" && go env GOROOT)
  packages=$(imported)
  root_files golang ca-certificates
  root=$(root_id golang)
  hash=$( (echo "$root $packages"; cat "$goroot/VERSION" "$repo/go.mod" "$repo/go.sum") | hash_of "$here"/golang/*)
  if is_current "$GOLANG_NAME" "$hash"; then
    say "$GOLANG_NAME is current"
  else
    mkdir "$scratch/golang"
    cp "$here"/golang/* "$repo/go.mod" "$repo/go.sum" "$scratch/golang"
    echo "$packages" >"$scratch/golang/packages"
    # Enough to build with: the standard library's tests stay out.
    tar -C "$goroot" --exclude=./test --exclude=testdata --exclude='*_test.go' --exclude=./api --exclude=./doc \
      -c . >"$scratch/golang/goroot.tar"
    modules "$scratch/golang/modules"
    goproxy=$(go env GOPROXY)
    # A password has no place in an image.
    case $goproxy in *@*) goproxy=off ;; esac
    echo "ENV GOPROXY=file:///usr/local/share/go-modules,$goproxy" >>"$scratch/golang/Dockerfile"
    build_on "$GOLANG_NAME" "$root" "$hash" "$scratch/golang"
    rm -rf "$scratch/golang"
  fi
  echo "export GO_IMAGE=$GOLANG_NAME"
}

# The package needs nothing but libc, so the root file system of the Go image is enough, and is not made again.
prometheus() {
  local hash package root
  package=$(apt-cache show --no-all-versions prometheus 2>/dev/null | grep '^SHA256:') ||
    cannot "apt knows no package prometheus: run apt-get update, or set PROMETHEUS_IMAGE to an image that the engine has or can pull"
  root_files golang ca-certificates
  root=$(root_id golang)
  hash=$(hash_of "$here"/prometheus/* <<<"$root $package")
  if is_current "$PROMETHEUS_NAME" "$hash"; then
    say "$PROMETHEUS_NAME is current"
  else
    cp -r "$here/prometheus" "$scratch/prometheus"
    (cd "$scratch/prometheus" && apt-get download prometheus && dpkg -x ./prometheus_*.deb files && mv files/usr usr && rm -r files ./prometheus_*.deb) \
      >"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; die "apt-get download prometheus failed; its last lines are above"; }
    build_on "$PROMETHEUS_NAME" "$root" "$hash" "$scratch/prometheus"
    rm -rf "$scratch/prometheus"
  fi
  echo "export PROMETHEUS_IMAGE=$PROMETHEUS_NAME"
}

# A function, so that the shell has read all of it before anything is run.
main() {
  local image
  if [ $# = 0 ]; then set -- postgres pubsub golang prometheus; fi
  for image in "$@"; do
    case $image in
      postgres | pubsub | golang | prometheus) ;;
      *) die "unknown image \"$image\": say postgres, pubsub, golang or prometheus, or nothing for all of them" ;;
    esac
  done
  distribution
  for image in "$@"; do
    case $image in
      postgres) postgres ;;
      pubsub) pubsub ;;
      golang) golang ;;
      prometheus) prometheus ;;
    esac
  done
}

main "$@"
exit
