use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn store(folder: &TempDir) -> SqliteStore {
    let store = SqliteStore::open(folder.path().join("data/vesta.db")).unwrap();
    store.open_namespace("ids", "a layout").unwrap();
    store
}

fn claimed(epoch: u64) -> Record {
    Record { epoch, owner: 7, bound: 100 * epoch, attempt: epoch, ..Record::default() }
}

fn claim(store: &SqliteStore, epoch: u64) -> Result<Cas, StoreError> {
    let expect = if epoch == 1 { Record::unclaimed(0) } else { claimed(epoch - 1) };
    store.cas("ids", 1, &expect.expect(), &claimed(epoch))
}

fn refusal(path: PathBuf) -> String {
    let error = SqliteStore::open(path).unwrap_err();
    assert!(error.is_permanent());
    error.to_string()
}

fn with_connection<T>(store: &SqliteStore, act: impl FnOnce(&Connection) -> T) -> T {
    act(store.state.lock().unwrap().connection.as_ref().unwrap())
}

#[test]
fn the_tables_are_as_documented() {
    let source = include_str!("../sqlite.rs");
    let shown = source.split("/// ```sql\n").nth(1).unwrap().split("/// ```\n").next().unwrap();
    let tight = |sql: &str| {
        let code =
            sql.lines().map(|line| line.trim_start_matches("///").split("--").next().unwrap());
        let words: Vec<_> = code.flat_map(str::split_whitespace).collect();
        words.join(" ")
    };
    let folder = folder();
    let stored = with_connection(&store(&folder), |connection| {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (application, version) =
            (number("application_id").unwrap(), number("user_version").unwrap());
        let mut sql =
            format!("PRAGMA application_id = 0x{application:X}; PRAGMA user_version = {version}; ");
        for table in ["vesta_namespace", "vesta_record"] {
            let made = "SELECT sql FROM sqlite_schema WHERE name = ?1";
            sql += &connection.query_row(made, [table], |row| row.get::<_, String>(0)).unwrap();
            sql += "; ";
        }
        sql
    });
    assert_eq!(tight(shown), tight(&stored).replace(" ; ", "; "));
}

#[test]
fn every_connection_syncs_each_change() {
    let folder = folder();
    for _ in 0..2 {
        with_connection(&store(&folder), |connection| {
            let text =
                |name| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
            let number =
                |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
            assert_eq!(text("journal_mode").unwrap(), "wal");
            assert_eq!(number("synchronous").unwrap(), 2);
            assert_eq!(number("busy_timeout").unwrap(), 1000);
        });
    }
}

#[test]
fn many_may_create_it_at_once() {
    let folder = folder();
    std::thread::scope(|scope| {
        let starters: Vec<_> = (0..8).map(|_| scope.spawn(|| store(&folder))).collect();
        let namespaces: Vec<_> = starters
            .into_iter()
            .map(|starter| starter.join().unwrap().open_namespace("ids", "x").unwrap())
            .collect();
        assert!(namespaces.windows(2).all(|pair| pair[0] == pair[1]), "{namespaces:?}");
    });
    let left: Vec<_> = fs::read_dir(folder.path().join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().ends_with(".tmp"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn what_is_not_vestas_is_refused_with_advice() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);

    fs::write(path("text"), "not a database, but long enough to be taken for one".repeat(99))
        .unwrap();
    assert!(refusal(path("text")).contains("restore it, or choose another path"));

    fs::write(path("empty"), "").unwrap();
    assert!(refusal(path("empty")).contains("empty, so nobody knows which machine IDs are taken"));

    Connection::open(path("other")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(refusal(path("other")).contains("another program; choose another path"));

    drop(SqliteStore::open(path("newer")).unwrap());
    Connection::open(path("newer")).unwrap().pragma_update(None, "user_version", 2).unwrap();
    assert!(refusal(path("newer")).contains("schema version 2, this build of Vesta knows 1"));

    assert!(refusal(path("")).contains("check that the database is a file"));
    assert!(refusal(path("text/below.db")).contains("check the path and its permissions"));

    fs::write(path("lost-wal"), "frames").unwrap();
    assert!(refusal(path("lost")).contains("is missing, but its log"));
}

#[test]
fn a_damaged_database_is_refused() {
    let folder = folder();
    let path = folder.path().join("data/vesta.db");
    claim(&store(&folder), 1).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() >= 3 * 4096);
    for page in bytes.chunks_mut(4096).skip(1) {
        page[..64].fill(0xA5);
    }
    fs::write(&path, bytes).unwrap();
    assert!(refusal(path).contains("the database is damaged"));
}

#[test]
fn a_file_deleted_or_replaced_while_in_use_ends_it_for_good() {
    for replaced in [false, true] {
        let folder = folder();
        let store = store(&folder);
        claim(&store, 1).unwrap();
        let path = folder.path().join("data/vesta.db");
        fs::remove_file(&path).unwrap();
        if replaced {
            drop(SqliteStore::open(folder.path().join("new.db")).unwrap());
            fs::rename(folder.path().join("new.db"), &path).unwrap();
        }
        for _ in 0..2 {
            let error = claim(&store, 2).unwrap_err();
            assert!(error.is_permanent(), "{error}");
            assert!(error.to_string().contains("deleted or replaced while in use"), "{error}");
        }
    }
}

#[test]
fn locked_by_another_it_is_unavailable_and_then_goes_on() {
    let folder = folder();
    let store = store(&folder);
    with_connection(&store, |connection| connection.busy_timeout(Duration::ZERO).unwrap());
    let other = Connection::open(&store.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = claim(&store, 1).unwrap_err();
    assert!(!error.is_permanent());
    assert!(error.to_string().starts_with("the database is locked by another process"), "{error}");
    assert_eq!(store.read("ids", 1).unwrap(), None, "readers are not in the way of writers");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(claim(&store, 1).unwrap(), Cas::Done);
}

#[test]
fn with_the_disk_full_it_is_unavailable_and_then_goes_on() {
    let folder = folder();
    let store = store(&folder);
    claim(&store, 1).unwrap();
    let full = |store: &SqliteStore| {
        with_connection(store, |connection| {
            let pages: i32 =
                connection.pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
            let set = |row: &rusqlite::Row<'_>| row.get::<_, i32>(0);
            connection.pragma_update_and_check(None, "max_page_count", pages, set).unwrap();
        });
    };
    full(&store);
    let big = Record { host: "x".repeat(20_000), ..claimed(2) };
    let error = store.cas("ids", 1, &claimed(1).expect(), &big).unwrap_err();
    assert!(!error.is_permanent());
    assert!(error.to_string().starts_with("the disk is full"), "{error}");
    assert_eq!(store.read("ids", 1).unwrap(), Some(claimed(1)), "nothing of it was kept");
    // The connection is a new one, without the limit.
    assert_eq!(store.cas("ids", 1, &claimed(1).expect(), &big).unwrap(), Cas::Done);
}

#[test]
fn numbers_beyond_63_bits_are_refused_and_not_cut() {
    let folder = folder();
    let store = store(&folder);
    let expect = Record::unclaimed(0).expect();
    for record in [
        Record { epoch: 1 << 63, ..claimed(1) },
        Record { bound: u64::MAX, ..claimed(1) },
        Record { attempt: 1 << 63, ..claimed(1) },
    ] {
        let error = store.cas("ids", 1, &expect, &record).unwrap_err();
        assert!(error.is_permanent() && error.to_string().contains("more than 63 bits"), "{error}");
    }
    assert!(store.cas("ids", 1 << 63, &expect, &claimed(1)).is_err());
    assert_eq!(store.list("ids").unwrap(), []);
}

#[test]
fn a_row_that_no_vesta_wrote_is_told_of() {
    let folder = folder();
    let store = store(&folder);
    claim(&store, 1).unwrap();
    let other = Connection::open(&store.path).unwrap();
    other
        .execute_batch("PRAGMA ignore_check_constraints = ON; UPDATE vesta_record SET bound = -1")
        .unwrap();
    let error = store.list("ids").unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("what no Vesta wrote"), "{error}");
}

#[test]
fn it_says_what_it_is() {
    let folder = folder();
    let path = folder.path().join("v.db");
    let store = crate::open(&format!("sqlite:{}", path.display())).unwrap();
    assert_eq!(store.describe(), format!("SQLite {}", path.display()));
    assert_eq!(describe(Path::new("vesta-data/vesta.db")), "SQLite vesta-data/vesta.db");
    assert_eq!(store.timing(), Timing::ONE_HOST);
    assert_eq!(store.now().unwrap(), None);
}

#[test]
fn a_path_that_makes_no_sense_is_refused() {
    for url in ["sqlite:", "sqlite://", "sqlite::memory:", "sqlite:a.db?mode=ro", "sqlite:a\0b"] {
        assert!(matches!(crate::open(url), Err(OpenError::Malformed { .. })), "{url:?}");
    }
}

#[test]
fn two_slashes_after_the_scheme_are_not_part_of_the_path() {
    for (rest, expected) in
        [("a/b.db", "a/b.db"), ("/a/b.db", "/a/b.db"), ("///a/b.db", "/a/b.db"), ("//a.db", "a.db")]
    {
        assert_eq!(path_of(&format!("sqlite:{rest}")).unwrap(), Path::new(expected));
    }
}

#[test]
fn without_auto_init_nothing_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vesta.db");
    let options = Options { auto_init: false, ..Options::default() };
    let refused = |result: Result<(), StoreError>| {
        let error = result.expect_err("nothing was prepared");
        assert!(error.is_permanent() && error.to_string().contains("store init"), "{error}");
    };
    refused(SqliteStore::open_with(&path, &options).map(|_| ()));
    assert!(!path.exists());

    let prepared = SqliteStore::open(&path).unwrap();
    prepared.open_namespace("known", "a layout").unwrap();
    let store = SqliteStore::open_with(&path, &options).unwrap();
    refused(store.open_namespace("unknown", "a layout").map(|_| ()));
    refused(store.insert("host", 1).map(|_| ()));
    assert_eq!(store.open_namespace("known", "a layout").unwrap().floor, 0);
}

#[test]
fn a_number_of_a_worker_node_is_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vesta.db");
    for expected in 1..=3 {
        assert_eq!(SqliteStore::open(&path).unwrap().insert("host", 7).unwrap(), expected);
    }
}
