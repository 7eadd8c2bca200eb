#!/usr/bin/env bash
# Vesta beside Leaf, CosId, uid-generator and ferroid: each with machine ID 1 and its own code, under the same faults.
# Prints the cells of the table in README.md. It takes two minutes.
#
#   scripts/check/peers.sh [FOLDER [FILE]]     FOLDER has clones named Leaf, CosId and uid-generator; by default they are
#                                              cloned from GitHub into the target folder. FILE keeps the figures
#
# It needs a JDK, faketime and some libraries of Java: as root it installs them on Debian.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages="default-jdk-headless faketime libguava-java libslf4j-java liblombok-java libcommons-lang-java libspring-core-java \
libspring-beans-java"
# shellcheck disable=SC2086 # names
[ "$(id -u)" != 0 ] || dpkg -s $packages >/dev/null 2>&1 || scripts/lib/install.sh $packages
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/peers
sources=${1:-$work/sources}
mkdir -p "$work" "$sources"

clone() {
  local name=$1 url=$2 commit=$3
  [ -e "$sources/$name" ] || git clone --quiet "$url" "$sources/$name" || {
    echo "cannot clone $url; pass a folder with a clone: scripts/check/peers.sh FOLDER" >&2
    exit 69
  }
  rm -rf "$work/$name"
  mkdir "$work/$name"
  git -C "$sources/$name" archive "$commit" | tar -x -C "$work/$name"
}
clone Leaf https://github.com/Meituan-Dianping/Leaf 86a6441d263497b9f9ee321de13422b9c63f0c06
clone CosId https://github.com/Ahoo-Wang/CosId fc29da0a2f11063f3b10c36b4cb9f7b22bae76fc
clone uid-generator https://github.com/baidu/uid-generator 2fcbc13d2016fcfb7648a18296951f6942215255

jars=
for jar in guava slf4j-api slf4j-nop lombok commons-lang commons-logging spring3-core spring3-beans; do
  [ -e "/usr/share/java/$jar.jar" ] || {
    echo "/usr/share/java/$jar.jar is missing; install the packages that $0 names" >&2
    exit 69
  }
  jars=$jars:/usr/share/java/$jar.jar
done
cosid=$work/CosId/cosid-core/src/main/java
rm -rf "$work/classes"
mkdir "$work/classes"
# Lombok sees only files that are named.
mapfile -t lombok < <(grep -rl lombok "$cosid"/me/ahoo/cosid/{stat,snowflake} "$cosid"/me/ahoo/cosid/machine/Default*Synchronizer.java)
javac -nowarn -implicit:class -d "$work/classes" -classpath "$jars" -processorpath /usr/share/java/lombok.jar \
  -processor 'lombok.launch.AnnotationProcessorHider$AnnotationProcessor' \
  -sourcepath "scripts/check/peers/stubs:$work/Leaf/leaf-core/src/main/java:$work/uid-generator/src/main/java:$cosid" \
  scripts/check/peers/Peer.java "${lombok[@]}"

cargo build --quiet --release -p vesta-service --example write_ids
exec python3 scripts/check/peers/compare.py "$target/release/examples/write_ids" "$work/classes$jars" "${@:2}"
