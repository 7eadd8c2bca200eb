//! IDs of a real PostgreSQL that crashes and whose clock goes back.

use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use vesta_testkit::fleet::{StoreServers, now};
use vesta_testkit::{WallClock, full_or, lacks};

use super::generate;

const CLIENTS: usize = 16;

/// A private server with its own clock.
pub(super) struct Server {
    pub(super) servers: StoreServers,
    clock: WallClock,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(super) fn start() -> Self {
        let servers = StoreServers::start(&["postgres"]);
        servers.run("stop", &["postgres"]);
        // Its user can read in this folder.
        let clock = WallClock::new(servers.folder());
        let server = Self {
            servers,
            clock,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
        };
        server.again("+0");
        server
    }

    /// Starts it again, with the clock at this distance from the right time.
    fn again(&self, offset: &str) {
        self.clock.step(offset);
        // Only the server has this clock. A process reads its clock's offset once.
        let mut under = Command::new("env");
        self.clock.under(&mut under);
        let words = under
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, value?.to_str()?)));
        let under: Vec<_> = ["env".to_owned()].into_iter().chain(words).collect();
        self.servers.start_postgres_under(&under);
    }

    /// SIGKILL to all its processes, then a start.
    pub(super) fn crash(&self, offset: &str) {
        self.servers.run("kill", &["postgres"]);
        self.again(offset);
    }

    /// Its clock, in seconds.
    fn clock(&self) -> i64 {
        let seconds = "SELECT extract(epoch FROM clock_timestamp())::bigint";
        self.ids(&mut self.connect(), seconds)[0]
    }

    fn options(&self) -> PgConnectOptions {
        let url = StoreServers::url(self.servers.folder(), "postgres");
        url.parse().expect("a URL")
    }

    pub(super) fn connect(&self) -> PgConnection {
        let connected = self.runtime.block_on(self.options().connect());
        connected.expect("the server answers")
    }

    pub(super) fn run(&self, session: &mut PgConnection, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        let done = sqlx::raw_sql(sql).execute(session);
        self.runtime.block_on(done).expect("it is done");
    }

    /// Carries out statements that may be refused.
    pub(super) fn ask(&self, session: &mut PgConnection, sql: &str) -> Result<(), String> {
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(session);
        let done = self.runtime.block_on(done);
        done.map(drop).map_err(|error| error.to_string())
    }

    pub(super) fn texts(&self, session: &mut PgConnection, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        let rows = sqlx::query_scalar(sql).fetch_all(session);
        self.runtime.block_on(rows).expect("texts")
    }

    pub(super) fn ids(&self, session: &mut PgConnection, sql: &str) -> Vec<i64> {
        let sql = AssertSqlSafe(sql.to_owned());
        let rows = sqlx::query_scalar(sql).fetch_all(session);
        self.runtime.block_on(rows).expect("IDs")
    }
}

/// Number of values that are there already.
fn twice(values: &[i64]) -> usize {
    let mut seen = HashSet::with_capacity(values.len());
    values.iter().filter(|value| !seen.insert(**value)).count()
}

/// A function as widely published: the clock, a shard, and a sequence modulo 1024.
const BY_THE_CLOCK: &str = "CREATE SEQUENCE published_count; \
    CREATE FUNCTION published_id() RETURNS bigint LANGUAGE sql VOLATILE AS $$ \
    SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420041600000) << 23 \
    | 5 << 10 | nextval('published_count') % 1024 $$;";

/// IDs that a client received from committed transactions.
#[derive(Default)]
struct Received {
    own: Vec<i64>,
    published: Vec<i64>,
}

/// Takes IDs, as many at once as `rows`, until `enough`; connects again after each crash.
async fn client(
    options: PgConnectOptions,
    rows: usize,
    taken: &AtomicUsize,
    enough: &AtomicBool,
) -> Received {
    let mut received = Received::default();
    let series = format!("generate_series(1, {rows})");
    let insert = format!("INSERT INTO orders SELECT vesta_id() FROM {series} RETURNING id");
    let select = format!("SELECT vesta_id() FROM {series}");
    let published = format!(
        "SELECT published_id() FROM generate_series(1, {})",
        rows * 2
    );
    'connected: while !enough.load(Ordering::Relaxed) {
        let Ok(mut session) = options.connect().await else {
            tokio::task::yield_now().await;
            continue;
        };
        while !enough.load(Ordering::Relaxed) {
            for (sql, is_published) in [(&insert, false), (&select, false), (&published, true)] {
                let sql = AssertSqlSafe(sql.clone());
                match sqlx::query_scalar::<_, i64>(sql)
                    .fetch_all(&mut session)
                    .await
                {
                    Ok(ids) => {
                        if !is_published {
                            taken.fetch_add(ids.len(), Ordering::Relaxed);
                        }
                        let into = if is_published {
                            &mut received.published
                        } else {
                            &mut received.own
                        };
                        into.extend(ids);
                    }
                    Err(_) => continue 'connected,
                }
            }
        }
    }
    received
}

/// Half of the IDs become rows; the other half are only read.
#[test]
fn ids_of_postgres_do_not_repeat_when_it_crashes_and_its_clock_goes_back() {
    if lacks("faketime") {
        return;
    }
    let wanted = full_or(2_000_000, 400_000);
    let server = Server::start();
    let mut session = server.connect();
    server.run(&mut session, &generate("max-peak", 7, "public"));
    server.run(&mut session, "CREATE TABLE orders (id bigint)");
    server.run(&mut session, BY_THE_CLOCK);
    let (taken, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let begin = now();
    let received: Vec<Received> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (options, taken, enough) = (server.options(), &taken, &enough);
                let rows = [1, 10, 100, 1000][number % 4];
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build();
                    let client = client(options, rows, taken, enough);
                    runtime.expect("a runtime").block_on(client)
                })
            })
            .collect();
        let reach = |part: usize| {
            while taken.load(Ordering::Relaxed) < wanted * part / 4 {
                std::thread::yield_now();
            }
        };
        reach(1);
        let before = server.clock();
        server.crash("-3600");
        assert!(server.clock() < before - 3000, "it went back");
        let back = now();
        reach(2);
        // The same hour, and the same seconds of it once more.
        let passed = (now() - back).as_secs() + 2;
        server.crash(&format!("-{}", 3600 + passed));
        reach(3);
        server.crash("+0");
        reach(4);
        enough.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .collect()
    });
    let seconds = (now() - begin).as_secs_f64();
    let mut session = server.connect();
    let rows = server.ids(&mut session, "SELECT id FROM orders");
    let of = |which: fn(&Received) -> &Vec<i64>| -> Vec<i64> {
        received.iter().flat_map(which).copied().collect()
    };
    let (own, published) = (of(|it| &it.own), of(|it| &it.published));
    println!(
        "{} rows and {} IDs of {CLIENTS} clients in {seconds:.0} s, 3 crashes: {} and {} twice; of {} by the clock \
         {} twice",
        rows.len(),
        own.len(),
        twice(&rows),
        twice(&own),
        published.len(),
        twice(&published),
    );
    assert!(rows.len() >= wanted * 4 / 10);
    assert_eq!((twice(&rows), twice(&own)), (0, 0));
    let rows: HashSet<_> = rows.into_iter().collect();
    let read = own.iter().filter(|id| !rows.contains(id)).count();
    assert!(
        read * 3 > own.len(),
        "the IDs that were only read are others"
    );
    assert!(
        twice(&published) > 0,
        "the checker finds the repetitions of a function that trusts the clock"
    );
}

/// The number of IDs that come again after a crash although a committed transaction that only read had them.
fn lost_by_a_crash(server: &Server, schema: &str, install: &str) -> usize {
    let mut session = server.connect();
    server.run(&mut session, &format!("CREATE SCHEMA {schema}; {install}"));
    // An hour ahead, so that no call has to raise the base.
    server.run(&mut session, &format!("SELECT {schema}.vesta_id()"));
    server.run(
        &mut session,
        &format!(
            "SELECT setval('{schema}.vesta_base', last_value + (3600::bigint << 20)) \
             FROM {schema}.vesta_base"
        ),
    );
    let call = format!("SELECT {schema}.vesta_id() FROM generate_series(1, 40)");
    // This one logs the progress of the sequence, and never commits.
    server.run(&mut session, &format!("BEGIN; {call}"));
    let mut reader = server.connect();
    let read = server.ids(&mut reader, &call.replace("40", "3"));
    server.crash("+0");
    let mut session = server.connect();
    let later = server.ids(&mut session, &call.replace("40", "200"));
    twice(&[read, later].concat())
}

#[test]
fn an_id_of_postgres_that_was_only_read_does_not_come_again_after_a_crash() {
    if lacks("faketime") {
        return;
    }
    let server = Server::start();
    // Nothing but commits writes to the disk.
    for sql in [
        "ALTER SYSTEM SET wal_writer_delay = '10s'",
        "SELECT pg_reload_conf()",
    ] {
        server.servers.run("sql", &["postgres", sql]);
    }
    let install = generate("max-peak", 7, "kept");
    assert_eq!(lost_by_a_crash(&server, "kept", &install), 0);
    // Without that record, the crash loses it.
    let record = "n := setval('lost.vesta_home', lost.vesta_here());";
    let with = generate("max-peak", 7, "lost");
    assert!(with.contains(record), "{with}");
    let without = with.replace(record, "");
    assert_eq!(lost_by_a_crash(&server, "lost", &without), 3);
    // Users without any right to the sequences can call it.
    let said = server.servers.run(
        "sql",
        &[
            "postgres",
            "CREATE ROLE ann; GRANT USAGE ON SCHEMA kept TO ann; SET ROLE ann; \
             SELECT 'made ' || (kept.vesta_id() > 0)",
        ],
    );
    assert!(said.contains("made true"), "{said}");
}

/// Duplicates are found, and nothing else.
#[test]
fn the_checker_of_ids_finds_a_planted_repetition() {
    assert_eq!((twice(&[3, 1, 2]), twice(&[3, 1, 3, 3])), (0, 2));
}
