#!/usr/bin/env bash
# Throw-away servers for the tests: MariaDB, PostgreSQL, Redis, ZooKeeper, etcd, PgBouncer, and vesta-server as a
# pool server, built before. Each listens on a free loopback port, with data, random password and log in its own folder
# below DIR. They are as durable as real ones. Missing programs are installed if apt-get can; nothing else on this
# machine is touched. Linux only.
#
#   scripts/lib/stores.sh start DIR [STORE…]    default: mysql postgres redis zookeeper etcd pool server. A killed
#                                               one starts again with its data and port
#   scripts/lib/stores.sh env DIR               their URLs, as lines for `eval`: export VESTA_TEST_MYSQL=…
#   scripts/lib/stores.sh stop DIR [STORE…]     stops what was started there; the data stays
#   scripts/lib/stores.sh kill DIR STORE…       as a crash would: SIGKILL
#   scripts/lib/stores.sh pause DIR STORE…      SIGSTOP: connections stay, but nothing answers
#   scripts/lib/stores.sh resume DIR STORE…     SIGCONT
#   scripts/lib/stores.sh replica DIR STORE     gives mysql, postgres or redis an asynchronous replica, which
#                                               is a separate store to all of these: mysql-replica, …
#   scripts/lib/stores.sh lag DIR STORE         once the replica has caught up, cuts it off from its source
#   scripts/lib/stores.sh promote DIR STORE     makes the replica an independent server, with its data
#   scripts/lib/stores.sh subscriber DIR postgres    a writable replica, by logical replication
#   scripts/lib/stores.sh lacks STORE           prints why it cannot be started here; nothing if it can
#   scripts/lib/stores.sh install               installs the missing programs of all stores
#   scripts/lib/stores.sh sql DIR STORE TEXT    has the administrator of mysql or postgres execute a text
#
# postgres starts under the command in POSTGRES_UNDER, if it is set: env LD_PRELOAD=…
#
# `pgbouncer`, which must be named, is a pooler in front of the postgres of DIR: database vesta in
# transaction mode, with two sessions for all, and vesta_session in session mode.
set -euo pipefail
umask 077

ALL=(mysql postgres redis zookeeper etcd pool_server)
REPLICAS=(mysql-replica postgres-replica redis-replica)
POOLERS=(pgbouncer)
# Time limit of a start. A quiet machine needs less than 5 s.
PATIENCE=60

usage() {
  sed -n '2,26s/^# \{0,1\}//p' "$0"
}

fail() {
  echo "$1" >&2
  exit "${2:-1}"
}

# ---- installing ----

# Programs of a store, and the first missing one.
lacks() {
  case $1 in
    mysql | postgres) id -un >/dev/null 2>&1 || { echo "user $(id -u) has no name" && return; } ;;
  esac
  case $1 in
    mysql) first_missing mariadbd mariadb mariadb-install-db ;;
    postgres) if [ -z "$(postgres_folder)" ]; then echo "no initdb"; else first_missing psql; fi ;;
    redis) first_missing redis-server redis-cli ;;
    zookeeper) if [ ! -e "$ZOOKEEPER_JAR" ]; then echo "no $ZOOKEEPER_JAR"; else first_missing java; fi ;;
    etcd) first_missing etcd ;;
    pool_server) [ -x "$VESTA_SERVER" ] || echo "no $VESTA_SERVER: cargo build -p vesta-server" ;;
    pgbouncer) first_missing pgbouncer ;;
  esac
}
first_missing() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "no $program" && return; }
  done
}

# Debian packages of a missing store.
missing() {
  [ -n "$(lacks "$1")" ] || return 0
  case $1 in
    mysql) echo mariadb-server ;;
    postgres) echo postgresql ;;
    redis) echo redis-server ;;
    zookeeper) echo libzookeeper-java default-jre-headless ;;
    etcd) echo etcd-server ;;
    pgbouncer) echo pgbouncer ;;
  esac
}

PATH=$PATH:/usr/sbin:/sbin
VESTA_SERVER=$(realpath -m "$(dirname "$0")/../../${CARGO_TARGET_DIR:-target}/debug/vesta-server")
case ${CARGO_TARGET_DIR:-} in /*) VESTA_SERVER=$CARGO_TARGET_DIR/debug/vesta-server ;; esac
ZOOKEEPER_JAR=/usr/share/java/zookeeper.jar

# The folder of initdb: Debian keeps it out of PATH.
postgres_folder() {
  local found
  found=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
  if [ -z "$found" ] && command -v initdb >/dev/null; then
    found=$(dirname "$(command -v initdb)")
  fi
  echo "$found"
}

# ---- processes ----

# Start time of a process, in ticks since boot: together with the process ID it is unique.
started_at() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -ra stat <<<"${stat##*) }"
  [ "${stat[0]}" != Z ] && echo "${stat[19]}"
}

# The process that runs a store, if any.
running() {
  local pid started
  [ -e "$DIR/$1/pid" ] && read -r pid started <"$DIR/$1/pid" || return 1
  [ "$(started_at "$pid")" = "$started" ] && echo "$pid"
}

children() {
  { cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed -n "s/^\([0-9]*\) (.*) [A-Z] $1 .*/\1/p"
}

# Sends a signal to a server and its child processes. Stopped first, it starts no new ones.
signal() {
  local pid children child
  pid=$(running "$2") || fail "$2 does not run in $DIR"
  [ "$1" = CONT ] || kill -STOP "$pid"
  children=$(children "$pid")
  for child in $children; do
    kill "-$1" "$child" 2>/dev/null || true
  done
  kill "-$1" "$pid"
  [ "$1" = KILL ] || return 0
  # A child that waits for the disk dies later, and the next server would find it using the data.
  for child in $pid $children; do
    gone "$child" || fail "process $child of $2 did not die"
  done
}

gone() {
  local deadline=$((SECONDS + 15))
  while started_at "$1" >/dev/null; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.02
  done
}

stop_store() {
  local pid signal=TERM
  pid=$(running "$1") || return 0
  [ "${1%-replica}" = postgres ] && signal=INT # do not wait for clients
  signal CONT "$1"
  kill -$signal "$pid" 2>/dev/null || true
  gone "$pid" || signal KILL "$1"
}

# ---- starting ----

password() {
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# Ports without listeners, below the range of outgoing connections.
declare -A TAKEN=()
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 10000))
    [ -z "${TAKEN[$port]:-}" ] || continue
    TAKEN[$port]=1
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  PORT=$port
}

# The answer of a port to a text.
ask() (
  exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
  printf '%b' "$2" >&3
  timeout 2 cat <&3
) 2>/dev/null

# Starts a command as a daemon, and records its process.
daemon() {
  setsid "$@" </dev/null >>"$home/log" 2>&1 &
  local pid=$!
  echo "$pid $(started_at "$pid")" >"$home/pid"
}

start_mysql() {
  # A starting server removes the temporary tables of all servers that share its folder for them.
  local options=(--no-defaults --datadir="$home/data" --tmpdir="$home/tmp")
  mkdir -p "$home/tmp"
  [ "$(id -u)" != 0 ] || options+=(--user=root)
  if [ ! -e "$home/ready" ]; then
    rm -rf "$home/data"
    mariadb-install-db "${options[@]}" --skip-test-db --auth-root-authentication-method=socket \
      --auth-root-socket-user="$(id -un)" --innodb-log-file-size=8M >>"$home/log" 2>&1 || return 1
    cat >"$home/init.sql" <<SQL
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS vesta@'%' IDENTIFIED BY '$password';
GRANT ALL ON *.* TO vesta@'%' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS vesta;
SQL
  fi
  [ -z "$source" ] || options+=(--read-only)
  # Paths are relative to the data folder: a socket's must be short.
  daemon mariadbd "${options[@]}" --init-file="$home/init.sql" --bind-address=127.0.0.1 --port="$port" \
    --socket=socket --pid-file=mariadbd.pid --skip-name-resolve --max-connections=500 \
    --innodb-flush-log-at-trx-commit=1 --innodb-log-file-size=8M --innodb-buffer-pool-size=32M \
    --server-id="$port" --log-bin=binlog --sync-binlog=1 --relay-log=relay
  url=mysql://vesta:$password@127.0.0.1:$port/vesta
}

ask_mysql() {
  MYSQL_PWD=$password mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --port="$1" --user=vesta \
    --connect-timeout=2 --skip-column-names --execute="$2" vesta
}

answers_mysql() {
  ask_mysql "$port" 'SELECT 1'
}

# From the first line of its source's log.
follow_mysql() {
  ask_mysql "$port" "CHANGE MASTER TO master_host = '127.0.0.1', master_port = $source_port,
    master_user = 'vesta', master_password = '$password', master_connect_retry = 1,
    master_use_gtid = slave_pos; START SLAVE"
}

state_mysql() {
  ask_mysql "$source_port" 'SELECT @@gtid_binlog_pos'
}

has_mysql() {
  [ "$(ask_mysql "$port" "SELECT MASTER_GTID_WAIT('$1', 1)")" = 0 ]
}

lag_mysql() {
  ask_mysql "$port" 'STOP SLAVE'
}

promote_mysql() {
  ask_mysql "$port" 'STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0'
}

# Sets `user` and `as_user` for a server that does not run as root.
not_as_root() {
  user=postgres as_user=()
  if [ "$(id -u)" = 0 ]; then
    id -u "$user" >/dev/null 2>&1 || user=nobody
    as_user=(setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups)
    chmod go+x "$DIR" "$home"
    "${as_user[@]}" test -x "$home" || {
      echo "user $user, as which this server must run, cannot access $home: choose another folder"
      return 1
    } >>"$home/log"
  fi
}

start_postgres() {
  local folder as_user user
  folder=$(postgres_folder)
  not_as_root || return 1
  if [ ! -e "$home/ready" ] && [ -n "$source" ]; then
    rm -rf "$home/data"
    mkdir "$home/data"
    [ ${#as_user[@]} = 0 ] || chown "$user" "$home/data"
    (
      cd /
      PGPASSWORD=$password "${as_user[@]}" "$folder/pg_basebackup" --host=127.0.0.1 \
        --port="$source_port" --username=owner --pgdata="$home/data" --write-recovery-conf \
        --checkpoint=fast --no-sync
    ) >>"$home/log" 2>&1 || return 1
  elif [ ! -e "$home/ready" ]; then
    rm -rf "$home/data"
    mkdir "$home/data"
    printf '%s' "$password" >"$home/data.password"
    [ ${#as_user[@]} = 0 ] || chown "$user" "$home/data" "$home/data.password"
    (
      cd /
      "${as_user[@]}" "$folder/initdb" --pgdata="$home/data" --username=owner \
        --pwfile="$home/data.password" --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync &&
        "${as_user[@]}" "$folder/postgres" --single -D "$home/data" postgres <<SQL
CREATE ROLE vesta LOGIN CREATEDB PASSWORD '$password'
CREATE DATABASE vesta OWNER vesta
SQL
    ) >>"$home/log" 2>&1 || return 1
    rm "$home/data.password"
  fi
  # After a kill, the process may not be reaped yet, which would count as running.
  rm -f "$home/data/postmaster.pid"
  cd /
  # shellcheck disable=SC2086 # words of a command
  daemon "${as_user[@]}" ${POSTGRES_UNDER:-} "$folder/postgres" -D "$home/data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c max_connections=500 -c shared_buffers=32MB -c fsync=on \
    -c synchronous_commit=on -c wal_level=logical
  url=postgres://vesta:$password@127.0.0.1:$port/vesta
}

# Each statement is a separate transaction, so that the sessions locked out cannot return before the
# next.
ask_postgres() {
  PGPASSWORD=$password PGCONNECT_TIMEOUT=2 psql --no-psqlrc --host=127.0.0.1 --port="$1" \
    --username="$2" --dbname=vesta --no-align --tuples-only --set=ON_ERROR_STOP=1 <<<"$3"
}

answers_postgres() {
  ask_postgres "$port" vesta 'SELECT 1'
}

# Its copy of the source names the server to follow.
follow_postgres() {
  :
}

state_postgres() {
  ask_postgres "$source_port" owner 'SELECT pg_current_wal_lsn()'
}

has_postgres() {
  [ "$(ask_postgres "$port" owner "SELECT pg_last_wal_replay_lsn() >= '$1'")" = t ]
}

lag_postgres() {
  ask_postgres "$port" owner "ALTER SYSTEM SET primary_conninfo = ''"
  ask_postgres "$port" owner 'SELECT pg_reload_conf()'
  until [ "$(ask_postgres "$port" owner 'SELECT count(*) FROM pg_stat_wal_receiver')" = 0 ]; do
    sleep 0.05
  done
}

promote_postgres() {
  if [ -e "$home/subscribed" ]; then
    ask_postgres "$port" owner 'DROP SUBSCRIPTION vesta'
    rm "$home/subscribed"
    return
  fi
  [ "$(ask_postgres "$port" owner 'SELECT pg_promote()')" = t ]
}

start_pgbouncer() {
  local as_user user postgres
  read -r postgres _ <"$DIR/postgres/ready" || return 1
  not_as_root || return 1
  cp "$DIR/postgres/password" "$home/password"
  password=$(cat "$home/password")
  printf '"%s" "%s"\n' vesta "$password" owner "$password" >"$home/users"
  cat >"$home/pgbouncer.ini" <<INI
[databases]
vesta_session = host=127.0.0.1 port=$postgres dbname=vesta pool_mode=session pool_size=100
* = host=127.0.0.1 port=$postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $home/users
pool_mode = transaction
default_pool_size = 2
max_client_conn = 500
INI
  [ ${#as_user[@]} = 0 ] || chown "$user" "$home/users" "$home/pgbouncer.ini"
  daemon "${as_user[@]}" pgbouncer "$home/pgbouncer.ini"
  url=postgres://vesta:$password@127.0.0.1:$port/vesta
}

answers_pgbouncer() {
  ask_postgres "$port" vesta 'SELECT 1'
}

start_redis() {
  mkdir -p "$home/data"
  cat >"$home/redis.conf" <<CONF
bind 127.0.0.1
port $port
dir "$home/data"
requirepass $password
appendonly yes
appendfsync always
save ""
maxmemory-policy noeviction
CONF
  [ -z "$source" ] || cat >>"$home/redis.conf" <<CONF
replicaof 127.0.0.1 $source_port
masterauth $password
repl-diskless-sync-delay 0
CONF
  daemon redis-server "$home/redis.conf"
  url=redis://:$password@127.0.0.1:$port/0
}

ask_redis() {
  REDISCLI_AUTH=$password timeout 2 redis-cli -p "$@"
}

answers_redis() {
  [ "$(ask_redis "$port" PING)" = PONG ]
}

# Its settings name the server to follow.
follow_redis() {
  :
}

state_redis() {
  ask_redis "$source_port" INFO replication | sed -n 's/^master_repl_offset:\([0-9]*\).*/\1/p'
}

has_redis() {
  local info offset
  info=$(ask_redis "$port" INFO replication) || return 1
  offset=$(sed -n 's/^slave_repl_offset:\([0-9]*\).*/\1/p' <<<"$info")
  grep -q '^master_link_status:up' <<<"$info" && [ "${offset:-0}" -ge "$1" ]
}

# Port 1 has no listener.
lag_redis() {
  ask_redis "$port" REPLICAOF 127.0.0.1 1
}

promote_redis() {
  ask_redis "$port" REPLICAOF NO ONE
}

start_zookeeper() {
  mkdir -p "$home/data"
  cat >"$home/zoo.cfg" <<CONF
dataDir=$home/data
clientPort=$port
clientPortAddress=127.0.0.1
maxClientCnxns=0
tickTime=500
preAllocSize=1024
admin.enableServer=false
4lw.commands.whitelist=srvr
CONF
  daemon java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx192m -cp "$ZOOKEEPER_JAR" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$home/zoo.cfg"
  url=zookeeper://127.0.0.1:$port/vesta
}

answers_zookeeper() {
  ask "$port" srvr | grep -q '^Mode:'
}

start_etcd() {
  daemon etcd --data-dir="$home/data" --log-level=warn --listen-client-urls="http://127.0.0.1:$port" \
    --advertise-client-urls="http://127.0.0.1:$port" --listen-peer-urls="http://127.0.0.1:$second_port" \
    --initial-advertise-peer-urls="http://127.0.0.1:$second_port" \
    --initial-cluster="default=http://127.0.0.1:$second_port"
  url=etcd://127.0.0.1:$port
}

answers_etcd() {
  ask "$port" 'GET /health HTTP/1.0\r\n\r\n' | grep -q '"health":"true"'
}

# Its store is a SQLite file; the password is the token.
start_pool_server() {
  local sha256
  sha256=$(printf '%s' "$password" | sha256sum)
  cat >"$home/vesta.toml" <<TOML
pool_server.namespaces = "*"
state_dir = "$home/data"
listen = "127.0.0.1:$port"
admin.listen = "127.0.0.1:$second_port"
[[auth.tokens]]
name = "members"
sha256 = "${sha256%% *}"
scopes = ["pool"]
TOML
  daemon "$VESTA_SERVER" --config "$home/vesta.toml"
  url=vesta://:$password@127.0.0.1:$port
}

answers_pool_server() {
  ask "$second_port" 'GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n' | grep -q ' 200 '
}

# Starts a store and waits until it answers. `port` and `second_port` are free ones, unless it has run
# before.
start_store() {
  local store=$1 port=$2 second_port=$3 password url deadline source source_port
  local home=$DIR/$store kind=${1%-replica}
  running "$store" >/dev/null && return
  mkdir -p "$home"
  [ -e "$home/password" ] || password >"$home/password"
  password=$(cat "$home/password")
  if [ -e "$home/ready" ]; then
    read -r port second_port <"$home/ready"
  fi
  source_of_store
  : >"$home/log"
  "start_$kind" || return 1
  deadline=$((SECONDS + PATIENCE))
  until "answers_$kind" >/dev/null 2>&1; do
    running "$store" >/dev/null || return 1
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.05
  done
  echo "$url" >"$home/url"
  echo "$port $second_port" >"$home/ready"
}

install() {
  local packages=() store package
  for store in "$@"; do
    for package in $(missing "${store%-replica}"); do
      packages+=("$package")
    done
  done
  [ ${#packages[@]} = 0 ] || "$(dirname "$0")/install.sh" "${packages[@]}"
}

start() {
  local failed=() store
  local -A starting=()
  install "$@"
  for store in "$@"; do
    local first second
    free_port && first=$PORT
    free_port && second=$PORT
    start_store "$store" "$first" "$second" &
    starting[$store]=$!
  done
  # A stop was requested in the meantime: a half-started server stops best once it has started.
  trap 'wait; for store in "${!starting[@]}"; do stop_store "$store"; done; exit 130' INT TERM
  for store in "$@"; do
    wait "${starting[$store]}" || failed+=("$store")
  done
  for store in "${failed[@]}"; do
    echo "$store did not start; the end of $DIR/$store/log:" >&2
    tail -n 20 "$DIR/$store/log" >&2 || true
    stop_store "$store"
  done
  [ ${#failed[@]} = 0 ]
}

# ---- replicas ----

# A store follows another one as long as its folder names that one.
source_of_store() {
  source='' source_port=''
  if [ -e "$home/source" ]; then
    source=$(cat "$home/source")
    read -r source_port _ <"$DIR/$source/ready"
  fi
}

start_replica() {
  local kind=$1 home=$DIR/$1-replica source source_port port password
  [ ! -e "$home/ready" ] || fail "$home is there already"
  running "$kind" >/dev/null || fail "$kind does not run in $DIR"
  mkdir -p "$home"
  cp "$DIR/$kind/password" "$home/password"
  echo "$kind" >"$home/source"
  start "$kind-replica"
  of_replica "$kind"
  "follow_$kind" >/dev/null
  catch_up "$kind"
}

# Writes to the tables of its source as a subscriber; both can be written.
start_subscriber() {
  local home=$DIR/postgres-replica port password source_port
  [ ! -e "$home/ready" ] || fail "$home is there already"
  read -r source_port _ <"$DIR/postgres/ready"
  mkdir -p "$home"
  cp "$DIR/postgres/password" "$home/password"
  password=$(cat "$home/password")
  start postgres-replica
  read -r port _ <"$home/ready"
  PGPASSWORD=$password pg_dump --host=127.0.0.1 --port="$source_port" --username=owner --schema-only vesta |
    PGPASSWORD=$password psql --no-psqlrc --quiet --host=127.0.0.1 --port="$port" --username=owner vesta >/dev/null
  ask_postgres "$source_port" owner 'CREATE PUBLICATION vesta FOR ALL TABLES' >/dev/null
  ask_postgres "$port" owner "CREATE SUBSCRIPTION vesta CONNECTION
    'host=127.0.0.1 port=$source_port user=owner password=$password dbname=vesta' PUBLICATION vesta" >/dev/null
  touch "$home/subscribed"
}

# Has the administrator execute a text.
sql() {
  local home=$DIR/$1 port password
  read -r port _ <"$home/ready"
  password=$(cat "$home/password")
  case $1 in
    mysql*) ask_mysql "$port" "$2" ;;
    postgres*) ask_postgres "$port" owner "$2" ;;
    *) fail "$1 knows no SQL" 64 ;;
  esac
}

of_replica() {
  kind=$1 home=$DIR/$1-replica
  [ -e "$home/ready" ] || fail "$kind has no replica in $DIR"
  read -r port _ <"$home/ready"
  password=$(cat "$home/password")
  source_of_store
}

# Waits until a replica has everything that its source has now.
catch_up() {
  local deadline=$((SECONDS + PATIENCE)) state
  state=$("state_$1")
  until "has_$1" "$state" 2>/dev/null; do
    [ $SECONDS -lt $deadline ] || fail "$1-replica does not catch up"
    sleep 0.05
  done
}

lag() {
  local kind home port password source source_port
  of_replica "$1"
  catch_up "$1"
  "lag_$1" >/dev/null
}

promote() {
  local kind home port password source source_port
  of_replica "$1"
  "promote_$1" >/dev/null
  rm -f "$home/source"
}

print_env() {
  local store name
  for store in "${ALL[@]}" "${REPLICAS[@]}" "${POOLERS[@]}"; do
    name=${store^^}
    [ ! -e "$DIR/$store/url" ] || printf "export VESTA_TEST_%s='%s'\n" "${name//-/_}" "$(cat "$DIR/$store/url")"
  done
  printf "export VESTA_TEST_STORES=%q\n" "$DIR"
}

# ---- the command line ----

case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
  install)
    install "${ALL[@]}" "${POOLERS[@]}"
    exit 0
    ;;
  lacks)
    lacks "${2:-}"
    exit 0
    ;;
esac
[ $# -ge 2 ] || {
  usage >&2
  exit 64
}
command=$1 DIR=$2
shift 2
text=
if [ "$command" = sql ]; then
  [ $# = 2 ] || fail 'sql wants a store and a text' 64
  text=$2
  set -- "$1"
fi
for store in "$@"; do
  case " ${ALL[*]} ${REPLICAS[*]} ${POOLERS[*]} " in
    *" $store "*) ;;
    *) fail "there is no store $store; known ones: ${ALL[*]} ${REPLICAS[*]} ${POOLERS[*]}" 64 ;;
  esac
done

case $command in
  start)
    mkdir -p "$DIR"
    DIR=$(cd "$DIR" && pwd)
    [ $# -gt 0 ] || set -- "${ALL[@]}"
    start "$@"
    ;;
  replica | lag | promote)
    [ -d "$DIR" ] || fail "$DIR is not a folder"
    DIR=$(cd "$DIR" && pwd)
    for store in "$@"; do
      case " ${REPLICAS[*]} " in
        *" $store-replica "*) ;;
        *) fail "$store can have no replica here" 64 ;;
      esac
    done
    [ $# -gt 0 ] || fail "$command which? mysql postgres redis" 64
    for store in "$@"; do
      case $command in
        replica) start_replica "$store" ;;
        lag) lag "$store" ;;
        promote) promote "$store" ;;
      esac
    done
    ;;
  subscriber | sql)
    [ -d "$DIR" ] || fail "$DIR is not a folder"
    DIR=$(cd "$DIR" && pwd)
    if [ "$command" = sql ]; then sql "$1" "$text"; else start_subscriber; fi
    ;;
  stop | env | kill | pause | resume)
    [ -d "$DIR" ] || fail "$DIR is not a folder"
    DIR=$(cd "$DIR" && pwd)
    case $command in
      env) print_env ;;
      stop)
        [ $# -gt 0 ] || set -- "${ALL[@]}" "${REPLICAS[@]}" "${POOLERS[@]}"
        stopping=()
        for store in "$@"; do
          stop_store "$store" &
          stopping+=($!)
        done
        for one in "${stopping[@]}"; do wait "$one"; done
        ;;
      *)
        [ $# -gt 0 ] || fail "$command which? ${ALL[*]}" 64
        for store in "$@"; do
          case $command in
            kill) signal KILL "$store" ;;
            pause) signal STOP "$store" ;;
            resume) signal CONT "$store" ;;
          esac
        done
        ;;
    esac
    ;;
  *)
    usage >&2
    exit 64
    ;;
esac
