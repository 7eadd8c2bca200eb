#!/usr/bin/env bash
# Compares UIDs of uid-generator's own classes, in its port to Spring Boot, with those of Vesta: docs/move/uid-generator.md.
# Maven fetches them; nothing of them is kept in this repository.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/uid
command -v mvn >/dev/null && command -v javac >/dev/null || scripts/lib/install.sh maven default-jdk-headless
mkdir -p "$work/classes"
cat >"$work/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>none</groupId><artifactId>none</artifactId><version>0</version>
  <dependencies>
    <dependency><groupId>com.github.wujun234</groupId><artifactId>uid-generator-spring-boot-starter</artifactId><version>1.0.3.RELEASE</version></dependency>
  </dependencies>
</project>
POM
[ -e "$work/jars/fetched" ] || mvn --batch-mode --quiet -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" || {
  echo "Maven cannot fetch uid-generator" >&2
  exit 69
}
touch "$work/jars/fetched"
javac -nowarn -d "$work/classes" -classpath "$work/jars/*" scripts/check/uid/Uid.java
[ -x "$target/debug/vesta" ] || cargo build --quiet -p vesta-cli --all-features
exec python3 scripts/check/uid/compare.py "$target/debug/vesta" "$work/classes:$work/jars/*"
