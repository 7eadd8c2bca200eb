//! MySQL passes the conformance suite.

mod segments;

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, Once};

use sqlx::mysql::{MySqlConnectOptions, MySqlRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use vesta_service::lease::{KvStore, StoreError};
use vesta_store::SegmentTable::{self, Kv, Leaf};
use vesta_store::conformance::{Backend, Fixture};
use vesta_store::import::{ForeignOwner, Legacy, machine_ids};
use vesta_store::{OpenError, Options, open_segments, open_worker_nodes};
use vesta_testkit::fleet::store_url;

use crate::serials;
use crate::shared::{self, AREA, fresh_name, open, opened, refused, unavailable};

struct Mysql;

/// A dedicated database.
struct Database(String, #[allow(dead_code, reason = "held")] Option<User>);

/// The suite requires stores that do not forget.
pub(crate) fn server() -> String {
    static DURABLE: Once = Once::new();
    let url = store_url("mysql");
    DURABLE.call_once(|| drop(ask(&url, "SET GLOBAL sync_binlog = 1")));
    url
}

/// Queries the server, in one of its databases.
pub(crate) fn ask(url: &str, sql: &str) -> Vec<MySqlRow> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // Another test checks everything that this process logs.
        let options: MySqlConnectOptions = url.parse().expect("a URL");
        let connecting = options.disable_statement_logging().connect().await;
        let mut connection = connecting.expect("the test server answers");
        let rows = sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await;
        connection.close().await.unwrap();
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    })
}

impl Database {
    fn fresh() -> Self {
        Self::of(Some(User::enter()))
    }

    /// `None` for a test that runs alone.
    fn of(user: Option<User>) -> Self {
        let name = fresh_name();
        ask(&server(), &format!("CREATE DATABASE {name}"));
        Self(name, user)
    }

    fn url(&self) -> String {
        let server = server();
        let (place, options) = server.split_once('?').unwrap_or((&server, ""));
        let (place, _) = place.rsplit_once('/').expect("a URL with a database");
        format!("{place}/{}?{options}", self.0)
    }

    fn ask(&self, sql: &str) -> Vec<MySqlRow> {
        ask(&self.url(), sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        ask(&server(), &format!("DROP DATABASE {}", self.0));
    }
}

impl Backend for Mysql {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Database::fresh())
    }
}

impl Fixture for Database {
    fn connect(&self) -> Arc<dyn KvStore> {
        let store = vesta_store::open(&self.url().parse().unwrap()).expect("it opens");
        // Called now, because the suite asks for the time when the database may have been dropped.
        store.now().expect("the test server answers");
        store
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        let delete = format!("DELETE FROM vesta_kv WHERE area = '{area}' AND name = '{key}'");
        self.ask(&delete);
        true
    }
}

vesta_store::conformance!(Mysql);

#[test]
fn serials_of_three_servers_while_days_months_and_years_end() {
    serials::run_all(&Mysql);
}

crate::shared_tests!(Database::fresh, Database::url,
    a_wrong_password_is_permanent_and_not_shown
    the_store_works_inside_a_runtime
    without_auto_init_nothing_is_created
    a_long_host_name_is_truncated
    no_statement_or_password_is_logged
);

#[test]
fn an_unresponsive_server_times_out() {
    shared::an_unresponsive_server_times_out("mysql");
}

#[test]
fn tables_can_be_created_concurrently() {
    shared::tables_can_be_created_concurrently(Database::fresh, Database::url);
}

#[test]
fn a_closed_connection_is_reopened() {
    let database = Database::fresh();
    shared::a_closed_connection_is_reopened(&database.url(), || {
        let theirs = format!(
            "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = '{}'",
            database.0
        );
        let ids = ask(&server(), &theirs);
        assert_eq!(ids.len(), 1);
        ask(&server(), &format!("KILL {}", ids[0].get::<i64, _>(0)));
    });
}

/// The level is the default of new sessions, which the store's do not change.
#[test]
fn puts_are_atomic_at_every_isolation_level() {
    let _alone = User::alone();
    let before: String =
        ask(&server(), "SELECT REPLACE(@@GLOBAL.tx_isolation, '-', ' ')")[0].get(0);
    let set = |level: &str| {
        ask(
            &server(),
            &format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {level}"),
        );
    };
    for level in [
        "READ UNCOMMITTED",
        "READ COMMITTED",
        "REPEATABLE READ",
        "SERIALIZABLE",
    ] {
        set(level);
        let database = Database::of(None);
        let url = database.url();
        let outcome = std::panic::catch_unwind(|| {
            assert_eq!(shared::one_of_many_puts_wins(&url), 0);
            assert_eq!(shared::ranges_of_many_claims_follow_one_another(&url), 0);
        });
        set(&before);
        assert!(outcome.is_ok(), "{level}");
    }
}

/// Claims of machine IDs keep a distance from changes that a crash may undo; nothing else does.
#[test]
fn a_server_that_may_lose_changes_is_doubted_or_refused() {
    let _alone = User::alone();
    let database = Database::of(None);
    let store = opened(&database.url());
    assert_eq!(store.doubt().unwrap(), None);
    for unsafe_value in [0, 2] {
        ask(
            &server(),
            &format!("SET GLOBAL innodb_flush_log_at_trx_commit = {unsafe_value}"),
        );
        // Over an existing connection, and over a new one.
        let doubts = [store.doubt(), open(&database.url()).doubt()];
        let nodes =
            open_worker_nodes(&database.url().parse().unwrap(), &Options::default()).unwrap();
        let nodes = nodes.insert("h", 1).map(drop);
        let answers = [nodes, tags(&database, Leaf), tags(&database, Kv)];
        ask(&server(), "SET GLOBAL innodb_flush_log_at_trx_commit = 1");
        let doubts = doubts.map(|doubt| doubt.unwrap().expect("a doubt").why);
        for said in doubts.into_iter().chain(answers.map(refused)) {
            assert!(
                said.contains("set innodb_flush_log_at_trx_commit = 1"),
                "{said}"
            );
        }
        assert_eq!(store.doubt().unwrap(), None, "it is checked again");
    }
}

fn tags(database: &Database, table: SegmentTable) -> Result<(), StoreError> {
    let options = Options {
        segment_table: Some(table),
        ..Options::default()
    };
    open_segments(&database.url().parse().unwrap(), &options)
        .unwrap()
        .tags()
        .map(drop)
}

/// The binary log determines which commits survive a crash.
#[test]
fn a_server_that_may_lose_its_binary_log_is_doubted() {
    let _alone = User::alone();
    let database = Database::of(None);
    let store = opened(&database.url());
    assert_eq!(store.doubt().unwrap(), None);
    let has_log = ask(&server(), "SELECT CAST(@@log_bin AS SIGNED)")[0].get::<i64, _>(0) == 1;
    ask(&server(), "SET GLOBAL sync_binlog = 0");
    let (doubt, others) = (store.doubt(), [tags(&database, Leaf), tags(&database, Kv)]);
    ask(&server(), "SET GLOBAL sync_binlog = 1");
    let doubt = doubt.unwrap();
    assert_eq!(doubt.is_some(), has_log);
    assert!(doubt.is_none_or(|doubt| doubt.why.contains("set sync_binlog = 1")));
    let _ = others.map(|answer| answer.expect("not refused"));
}

#[test]
fn a_read_only_server_is_a_transient_error() {
    let _alone = User::alone();
    let database = Database::of(None);
    opened(&database.url());
    ask(&server(), "SET GLOBAL read_only = 1");
    let store = open(&database.url());
    let answer = store.put_if(AREA, "1", None, "x");
    ask(&server(), "SET GLOBAL read_only = 0");
    let said = unavailable(answer);
    assert!(
        said.contains("read-only: it is a replica, or a fail-over is in progress"),
        "{said}"
    );
    assert!(store.put_if(AREA, "1", None, "x").unwrap());
}

#[test]
fn a_missing_database_is_permanent_and_a_missing_privilege_is_not() {
    let database = Database::fresh();
    let gone = database.url().replace(&database.0, &fresh_name());
    let said = refused(open(&gone).list(AREA));
    assert!(
        said.contains("check the user, the password and the database"),
        "{said}"
    );

    opened(&database.url());
    let user = &fresh_name()[..20];
    ask(
        &server(),
        &format!("CREATE USER {user}@'%' IDENTIFIED BY 'planted'"),
    );
    ask(
        &server(),
        &format!("GRANT SELECT ON {}.* TO {user}@'%'", database.0),
    );
    let url = database.url();
    let (_, place) = url.rsplit_once('@').unwrap();
    let store = open(&format!("mysql://{user}:planted@{place}"));
    let listed = store.list(AREA);
    let put = store.put_if(AREA, "1", None, "x");
    let doubt = store.doubt();
    ask(&server(), &format!("DROP USER {user}@'%'"));
    listed.unwrap();
    assert_eq!(doubt.unwrap(), None, "asking needs no privilege");
    // An operator can grant it again.
    let said = unavailable(put);
    assert!(
        said.contains("INSERT command denied") && !said.contains("planted"),
        "{said}"
    );
}

#[test]
fn a_table_that_may_lose_rows_is_refused() {
    let database = Database::fresh();
    opened(&database.url());
    database.ask("ALTER TABLE vesta_kv MODIFY name VARBINARY(400) NOT NULL, ENGINE = MyISAM");
    let said = refused(open(&database.url()).get(AREA, "1"));
    assert!(
        said.contains("MyISAM") && said.contains("ENGINE = InnoDB"),
        "{said}"
    );
}

#[test]
fn a_row_not_written_by_vesta_is_reported() {
    let database = Database::fresh();
    let store = opened(&database.url());
    database.ask(&format!(
        "INSERT INTO vesta_kv VALUES ('{AREA}', '1', X'FF')"
    ));
    let said = refused(store.list(AREA));
    assert!(
        said.contains("is not a Vesta record: invalid utf-8"),
        "{said}"
    );
}

/// As created by uid-generator.
const ORIGINAL: &str = "CREATE TABLE WORKER_NODE (
    ID BIGINT NOT NULL AUTO_INCREMENT COMMENT 'auto increment id',
    HOST_NAME VARCHAR(64) NOT NULL COMMENT 'host name',
    PORT VARCHAR(64) NOT NULL COMMENT 'port',
    TYPE INT NOT NULL COMMENT 'node type: ACTUAL or CONTAINER',
    LAUNCH_DATE DATE NOT NULL COMMENT 'launch date',
    MODIFIED TIMESTAMP NOT NULL COMMENT 'modified time',
    CREATED TIMESTAMP NOT NULL COMMENT 'created time',
    PRIMARY KEY(ID)
) COMMENT='DB WorkerID Assigner for UID Generator', ENGINE = INNODB";

#[test]
fn a_thousand_racing_nodes_get_different_numbers() {
    let database = Database::fresh();
    let numbers = shared::a_thousand_racing_nodes_get_different_numbers(&database.url());
    let rows = database.ask("SELECT ID FROM WORKER_NODE");
    assert_eq!(
        rows.iter()
            .map(|row| row.get::<i64, _>(0) as u64)
            .collect::<HashSet<_>>(),
        numbers
    );
    database.ask("ALTER TABLE WORKER_NODE AUTO_INCREMENT = 4096");
    shared::the_next_number_is(4096, &database.url());
}

#[test]
fn the_table_of_uid_generator_is_used_unchanged() {
    let database = Database::fresh();
    // The driver's SQL mode would reject the invalid date that is the last column's default.
    database.ask(&format!("SET sql_mode = ''; {ORIGINAL}"));
    database.ask(
        "INSERT INTO WORKER_NODE (ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
         VALUES (41, '10.0.0.1', '1577-3', 2, '2020-01-01', NOW(), NOW())",
    );
    let before = database.ask("SHOW CREATE TABLE WORKER_NODE")[0].get::<String, _>(1);
    let options = Options {
        auto_init: false,
        ..Options::default()
    };
    let nodes = open_worker_nodes(&database.url().parse().unwrap(), &options).unwrap();
    assert_eq!(nodes.insert("host", 4711).unwrap(), 42);
    assert_eq!(nodes.insert("host", 4711).unwrap(), 43);
    let row = &database.ask(
        "SELECT HOST_NAME, PORT, TYPE, LAUNCH_DATE >= CURRENT_DATE - INTERVAL 1 DAY \
         AND CREATED > NOW() - INTERVAL 1 HOUR AND MODIFIED = CREATED \
         FROM WORKER_NODE WHERE ID = 42",
    )[0];
    assert_eq!(
        (row.get::<String, _>(0), row.get::<String, _>(1)),
        ("host".into(), "4711".into())
    );
    assert_eq!((row.get::<i64, _>(2), row.get::<i64, _>(3)), (2, 1));
    let after = database.ask("SHOW CREATE TABLE WORKER_NODE")[0].get::<String, _>(1);
    let shape = |made: &str| {
        made.replace(" AUTO_INCREMENT=42", "")
            .replace(" AUTO_INCREMENT=44", "")
    };
    assert_eq!(shape(&before), shape(&after));
}

#[test]
fn machine_ids_of_the_java_vesta_are_found() {
    let database = Database::fresh();
    let missing = machine_ids(&database.url().parse().unwrap(), Legacy::VestaDb);
    let Err(OpenError::Store { source, .. }) = missing else {
        panic!("{missing:?}")
    };
    assert!(refused(Err::<(), StoreError>(source)).contains("no table DB_MACHINE_ID_PROVIDER"));
    for table in ["DB_MACHINE_ID_PROVIDER", "db_machine_id_provider"] {
        database.ask(&format!(
            "CREATE TABLE {table} (ID bigint NOT NULL, IP varchar(64) DEFAULT NULL, \
             PRIMARY KEY (ID), UNIQUE KEY UK_IP (IP)); \
             INSERT INTO {table} VALUES (0, NULL), (3, '10.0.0.3'), (1, '10.0.0.1'), (1023, 'ü')"
        ));
        let found = machine_ids(&database.url().parse().unwrap(), Legacy::VestaDb).unwrap();
        let predecessor = |machine, host: &str| ForeignOwner {
            machine,
            host: host.into(),
            last_used: None,
        };
        let expected =
            [(1, "10.0.0.1"), (3, "10.0.0.3"), (1023, "ü")].map(|(m, h)| predecessor(m, h));
        assert_eq!(found, expected);
        database.ask(&format!("DROP TABLE {table}"));
    }
}

/// Tests that change the server's settings run while no other test uses it.
static USERS: (Mutex<i32>, Condvar) = (Mutex::new(0), Condvar::new());

/// A user of the server, or many at once for a test that runs alone.
pub(crate) struct User(i32);

impl User {
    const ALL: i32 = i32::MAX / 2;

    pub(crate) fn enter() -> Self {
        Self::enter_as(1, |count| count >= Self::ALL)
    }

    fn alone() -> Self {
        Self::enter_as(Self::ALL, |count| count != 0)
    }

    fn enter_as(weight: i32, too_many: impl Fn(i32) -> bool) -> Self {
        let (count, fewer) = &USERS;
        *fewer
            .wait_while(count.lock().unwrap(), |count| too_many(*count))
            .unwrap() += weight;
        Self(weight)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        *USERS.0.lock().unwrap() -= self.0;
        USERS.1.notify_all();
    }
}
