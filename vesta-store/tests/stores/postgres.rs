//! PostgreSQL passes the conformance suite.

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use vesta_service::lease::KvStore;
use vesta_store::conformance::{Backend, Fixture};
use vesta_store::{Options, SegmentTable, open_segments, open_worker_nodes};
use vesta_testkit::fleet::store_url;

use crate::shared::{self, AREA, fresh_name, open, opened, refused, unavailable};

struct Postgres;

/// A dedicated schema; its name is also that of its connections.
struct Schema(String);

fn server() -> String {
    store_url("postgres")
}

fn with_option(url: &str, option: &str) -> String {
    format!("{url}{}{option}", if url.contains('?') { '&' } else { '?' })
}

fn ask(url: &str, sql: &str) -> Vec<PgRow> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // Another test checks everything that this process logs.
        let options: PgConnectOptions = url.parse().expect("a URL");
        let connecting = options.disable_statement_logging().connect().await;
        let mut connection = connecting.expect("the test server answers");
        let rows = sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await;
        connection.close().await.unwrap();
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    })
}

impl Schema {
    fn fresh() -> Self {
        let name = fresh_name();
        ask(&server(), &format!("CREATE SCHEMA {name}"));
        Self(name)
    }

    fn url(&self) -> String {
        let url = with_option(&server(), &format!("options[search_path]={}", self.0));
        with_option(&url, &format!("application_name={}", self.0))
    }

    fn ask(&self, sql: &str) -> Vec<PgRow> {
        ask(&self.url(), sql)
    }

    /// Replaces a server function for sessions with this URL.
    fn replaced(&self, function: &str, body: &str) -> String {
        self.ask(&format!(
            "CREATE FUNCTION {function} LANGUAGE sql AS $$ SELECT {body} $$"
        ));
        self.before_the_catalogue()
    }

    /// A search path where functions of this schema hide those of the server.
    fn before_the_catalogue(&self) -> String {
        with_option(
            &self.url(),
            &format!("options[search_path]={},pg_catalog", self.0),
        )
    }

    /// The server, apparently with this setting.
    fn with_setting(&self, setting: &str, value: &str) -> String {
        let body = format!(
            "CASE $1 WHEN '{setting}' THEN '{value}' ELSE pg_catalog.current_setting($1) END"
        );
        self.replaced("current_setting(text) RETURNS text", &body)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let sql = format!(
            "SET client_min_messages = error; DROP SCHEMA {} CASCADE",
            self.0
        );
        ask(&server(), &sql);
    }
}

impl Backend for Postgres {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Schema::fresh())
    }
}

impl Fixture for Schema {
    fn connect(&self) -> Arc<dyn KvStore> {
        vesta_store::open(&self.url().parse().unwrap()).expect("it opens")
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        let delete = format!("DELETE FROM vesta_kv WHERE area = '{area}' AND name = '{key}'");
        self.ask(&delete);
        true
    }
}

vesta_store::conformance!(Postgres);

crate::shared_tests!(Schema::fresh, Schema::url,
    a_wrong_password_is_permanent_and_not_shown
    the_store_works_inside_a_runtime
    without_auto_init_nothing_is_created
    a_long_host_name_is_truncated
    no_statement_or_password_is_logged
);

#[test]
fn an_unresponsive_server_times_out() {
    shared::an_unresponsive_server_times_out("postgres");
}

#[test]
fn tables_can_be_created_concurrently() {
    shared::tables_can_be_created_concurrently(Schema::fresh, Schema::url);
}

#[test]
fn a_closed_connection_is_reopened() {
    let schema = Schema::fresh();
    shared::a_closed_connection_is_reopened(&schema.url(), || {
        let end = format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
             WHERE application_name = '{}'",
            schema.0
        );
        let ended = ask(&server(), &end);
        assert!(ended.len() == 1 && ended[0].get::<bool, _>(0));
    });
}

/// The level is the sessions' default before they choose their own.
#[test]
fn one_of_many_puts_wins_at_every_isolation_level() {
    for level in [
        "read uncommitted",
        "read committed",
        "repeatable read",
        "serializable",
    ] {
        let schema = Schema::fresh();
        let default = format!("options[default_transaction_isolation]={level}");
        let url = with_option(&schema.url(), &default);
        assert_eq!(shared::one_of_many_puts_wins(&url), 0);
        assert_eq!(shared::ranges_of_many_claims_follow_one_another(&url), 0);
    }
}

/// If sessions were to begin at such a level after all.
#[test]
fn one_of_many_puts_wins_if_conflicting_puts_are_refused() {
    for level in ["repeatable read", "serializable"] {
        let schema = Schema::fresh();
        let set_config = "set_config(text, text, boolean) RETURNS text";
        let body = format!(
            "pg_catalog.set_config($1, CASE $1 WHEN 'default_transaction_isolation' THEN '{level}' \
             ELSE $2 END, $3)"
        );
        let url = schema.replaced(set_config, &body);
        // Some give up in the end: they are retried a second later.
        shared::one_of_many_puts_wins(&url);
        shared::ranges_of_many_claims_follow_one_another(&url);
    }
}

/// Claims of machine IDs keep a distance from changes that a crash may undo; nothing else does.
#[test]
fn a_server_that_may_lose_changes_is_doubted_or_refused() {
    for (setting, value) in [("fsync", "off"), ("synchronous_commit", "local")] {
        let schema = Schema::fresh();
        let url = schema.with_setting(setting, value);
        let tags = |table| {
            let options = Options {
                segment_table: Some(table),
                ..Options::default()
            };
            open_segments(&url.parse().unwrap(), &options)
                .unwrap()
                .tags()
        };
        let nodes = open_worker_nodes(&url.parse().unwrap(), &Options::default()).unwrap();
        for said in [
            opened(&url).doubt().unwrap().expect("a doubt").why,
            refused(nodes.insert("h", 1)),
            refused(tags(SegmentTable::Leaf)),
            refused(tags(SegmentTable::Kv)),
        ] {
            assert!(said.contains(&format!("set {setting} = on")), "{said}");
        }
    }
}

/// Each is detected over an existing connection.
#[test]
fn a_server_that_may_fail_over_is_doubted() {
    let replicas = "CREATE VIEW pg_stat_replication AS SELECT 1 AS pid";
    let slots = "CREATE VIEW pg_replication_slots AS SELECT 'physical'::text AS slot_type, NULL AS database";
    let publishes = "CREATE VIEW pg_replication_slots AS \
                     SELECT 'logical'::text AS slot_type, current_database() AS database";
    let promoted = "CREATE FUNCTION pg_walfile_name(pg_lsn) RETURNS text LANGUAGE sql AS \
                    $$ SELECT '0000000A0000000000000001' $$";
    let secret = "CREATE FUNCTION pg_walfile_name(pg_lsn) RETURNS text LANGUAGE sql AS \
                  $$ SELECT rolpassword FROM pg_authid LIMIT 1 $$";
    for (change, why) in [
        (replicas, "set synchronous_standby_names"),
        (slots, "set synchronous_standby_names"),
        (publishes, "set synchronous_standby_names"),
        (promoted, "it was promoted"),
        (secret, "it does not say whether it has replicas"),
    ] {
        let schema = Schema::fresh();
        let store = opened(&schema.before_the_catalogue());
        assert_eq!(store.doubt().unwrap(), None);
        schema.ask(change);
        let doubt = store.doubt().unwrap().expect(why).why;
        assert!(doubt.contains(why), "{doubt}");
    }
    for (setting, value, why) in [
        ("full_page_writes", "off", Some("set full_page_writes = on")),
        ("synchronous_standby_names", "*", None),
    ] {
        let schema = Schema::fresh();
        schema.ask(if why.is_none() { replicas } else { "" });
        let doubt = opened(&schema.with_setting(setting, value))
            .doubt()
            .unwrap();
        assert_eq!(doubt.is_some(), why.is_some());
        assert!(
            doubt
                .zip(why)
                .is_none_or(|(doubt, why)| doubt.why.contains(why))
        );
    }
}

/// The server's default does not matter.
#[test]
fn every_session_asks_for_durable_commits() {
    for (default, asked) in [
        ("off", "on"),
        ("local", "on"),
        ("remote_apply", "remote_apply"),
    ] {
        let schema = Schema::fresh();
        let url = with_option(
            &schema.url(),
            &format!("options[synchronous_commit]={default}"),
        );
        schema.ask(
            "CREATE TABLE seen (value text); \
             CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO seen SELECT current_setting('synchronous_commit'); RETURN NEW; END $$",
        );
        let store = opened(&url);
        schema.ask(
            "CREATE TRIGGER look BEFORE INSERT ON vesta_kv FOR EACH ROW \
             EXECUTE FUNCTION look()",
        );
        assert!(store.put_if(AREA, "1", None, "x").unwrap());
        assert_eq!(
            schema.ask("SELECT value FROM seen")[0].get::<String, _>(0),
            asked
        );
    }
}

#[test]
fn a_server_in_recovery_is_a_transient_error() {
    let schema = Schema::fresh();
    let url = schema.replaced("pg_is_in_recovery() RETURNS boolean", "true");
    let store = open(&url);
    let said = unavailable(store.get(AREA, "1"));
    assert!(
        said.contains("read-only: it is a replica, or a fail-over is in progress"),
        "{said}"
    );
    schema.ask(&format!("DROP FUNCTION {}.pg_is_in_recovery()", schema.0));
    assert_eq!(store.get(AREA, "1").unwrap(), None);
}

#[test]
fn a_read_only_session_is_a_transient_error() {
    let schema = Schema::fresh();
    let url = with_option(&schema.url(), "options[default_transaction_read_only]=on");
    opened(&schema.url());
    let said = unavailable(open(&url).put_if(AREA, "1", None, "x"));
    assert!(said.contains("the server is read-only"), "{said}");
}

#[test]
fn a_missing_database_is_permanent_and_a_missing_privilege_is_not() {
    let schema = Schema::fresh();
    let gone = with_option(&schema.url(), "dbname=no_such_database");
    let said = refused(open(&gone).list(AREA));
    assert!(
        said.contains("check the user, the password and the database"),
        "{said}"
    );

    let store = opened(&schema.url());
    schema.ask("REVOKE INSERT ON vesta_kv FROM CURRENT_USER");
    store.list(AREA).unwrap();
    // An operator can grant it again.
    let said = unavailable(store.put_if(AREA, "1", None, "x"));
    assert!(said.contains("42501: permission denied"), "{said}");
}

#[test]
fn a_table_that_may_lose_rows_is_refused() {
    let schema = Schema::fresh();
    opened(&schema.url());
    schema.ask("ALTER TABLE vesta_kv SET UNLOGGED");
    let said = refused(open(&schema.url()).get(AREA, "1"));
    assert!(said.contains("SET LOGGED"), "{said}");
}

#[test]
fn a_row_not_written_by_vesta_is_reported() {
    let schema = Schema::fresh();
    let store = opened(&schema.url());
    schema.ask(&format!(
        "INSERT INTO vesta_kv VALUES ('{AREA}', '1', '\\xff')"
    ));
    let said = refused(store.list(AREA));
    assert!(
        said.contains("is not a Vesta record: invalid utf-8"),
        "{said}"
    );
}

#[test]
fn a_thousand_racing_nodes_get_different_numbers() {
    let schema = Schema::fresh();
    let numbers = shared::a_thousand_racing_nodes_get_different_numbers(&schema.url());
    let rows = schema.ask("SELECT id FROM worker_node");
    assert_eq!(
        rows.iter()
            .map(|row| row.get::<i64, _>(0) as u64)
            .collect::<HashSet<_>>(),
        numbers
    );
    // PostgreSQL chose the sequence's name: _seq1 where starters raced to create the table.
    schema.ask("SELECT setval(pg_get_serial_sequence('worker_node', 'id'), 4096, false)");
    shared::the_next_number_is(4096, &schema.url());
}

/// As it may have been ported from MySQL.
#[test]
fn the_table_of_uid_generator_is_used_unchanged() {
    let schema = Schema::fresh();
    schema.ask(
        "CREATE TABLE WORKER_NODE (ID BIGSERIAL PRIMARY KEY, HOST_NAME VARCHAR(64) NOT NULL, \
         PORT VARCHAR(64) NOT NULL, TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, \
         MODIFIED TIMESTAMP NOT NULL, CREATED TIMESTAMP NOT NULL)",
    );
    let options = Options {
        auto_init: false,
        ..Options::default()
    };
    let nodes = open_worker_nodes(&schema.url().parse().unwrap(), &options).unwrap();
    assert_eq!(nodes.insert("host", 4711).unwrap(), 1);
    assert_eq!(nodes.insert("host", 4711).unwrap(), 2);
    let row = &schema.ask(
        "SELECT host_name, port, type, launch_date >= CURRENT_DATE - 1 AND created = modified \
         AND created > now() - interval '1 day' FROM worker_node WHERE id = 1",
    )[0];
    assert_eq!(
        (row.get::<String, _>(0), row.get::<String, _>(1)),
        ("host".into(), "4711".into())
    );
    assert_eq!((row.get::<i32, _>(2), row.get::<bool, _>(3)), (2, true));
}

mod segments {
    use std::sync::Arc;

    use vesta_numbers::segment::SegmentStore;
    use vesta_store::segment_conformance::{self, Databases};
    use vesta_store::{Options, SegmentTable, open_segments};

    use super::Schema;
    use crate::shared::{self, ColumnTypes};

    struct Segments(SegmentTable);
    struct One(Schema, SegmentTable);

    impl Databases for Segments {
        fn fresh(&self) -> Box<dyn segment_conformance::Database> {
            Box::new(One(Schema::fresh(), self.0))
        }
    }

    impl segment_conformance::Database for One {
        fn connect(&self) -> Arc<dyn SegmentStore> {
            let options = Options {
                segment_table: Some(self.1),
                ..Options::default()
            };
            open_segments(&self.0.url().parse().unwrap(), &options).expect("it opens")
        }
    }

    #[test]
    fn whole_numbers_of_any_width_are_read_and_a_bad_row_affects_no_other() {
        let database = Schema::fresh();
        let types = ColumnTypes {
            whole: &["integer", "smallint", "numeric", "numeric(20,0)", "bigint"],
            lossy: &["double precision", "real", "numeric(20,2)", "text"],
            both: |kind| {
                format!(
                    "ALTER TABLE leaf_alloc ALTER max_id DROP DEFAULT, ALTER max_id TYPE {kind} \
                     USING max_id::{kind}, ALTER step TYPE {kind} USING step::{kind}"
                )
            },
            max_id: |kind| {
                format!("ALTER TABLE leaf_alloc ALTER max_id TYPE {kind} USING max_id::{kind}")
            },
            nullable: &["ALTER TABLE leaf_alloc ALTER max_id TYPE bigint USING \
                 round(max_id::numeric)::bigint, ALTER max_id DROP NOT NULL"],
        };
        let ask = |sql: &str| _ = database.ask(sql);
        shared::whole_numbers_of_any_width_are_read(&database.url(), ask, &types);
    }

    mod leaf {
        vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Leaf));
    }

    mod leaf_like {
        vesta_store::segment_conformance!(super::Segments(
            "leaf:t_leaf_alloc:updated_at".parse().unwrap()
        ));
    }

    mod kv {
        vesta_store::segment_conformance!(super::Segments(super::SegmentTable::Kv));
    }
}
