use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use vesta_service::lease::KvStore as _;
use vesta_service::options::WorkerNodeStore as _;

use super::*;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn opened(path: impl AsRef<Path>, options: &Options) -> Result<Database, OpenError> {
    let url: StoreUrl = format!("sqlite:{}", path.as_ref().display())
        .parse()
        .unwrap();
    Database::open(&url, options)
}

fn at(path: impl AsRef<Path>) -> Database {
    opened(path, &Options::default()).unwrap()
}

fn store(folder: &TempDir) -> Database {
    at(folder.path().join("data/vesta.db"))
}

/// Replaces the number before `n` by `n`.
fn put(store: &Database, n: u64) -> Result<bool, StoreError> {
    let old = (n > 1).then(|| (n - 1).to_string());
    store.put_if("lease/ids", "1", old.as_deref(), &n.to_string())
}

fn number(store: &Database) -> Option<String> {
    store.get("lease/ids", "1").unwrap()
}

fn refusal(path: PathBuf) -> String {
    match opened(path, &Options::default()) {
        Err(OpenError::Store { source, .. }) if source.is_permanent() => source.to_string(),
        other => panic!("{other:?}"),
    }
}

fn with_connection<T>(store: &Database, act: impl FnOnce(&Connection) -> T) -> T {
    act(store.state.lock().unwrap().connection.as_ref().unwrap())
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

/// A record takes about 330 bytes plus the name of its host.
#[test]
fn a_changed_record_is_one_page_in_the_log() {
    let folder = folder();
    let store = store(&folder);
    let record = |n: u32| format!("{n:0400}");
    let put = |old: Option<&str>, new: u32| {
        let new = record(new);
        assert!(store.put_if("lease/default", "1023", old, &new).unwrap());
        let log = fs::metadata(folder.path().join("data/vesta.db-wal")).unwrap();
        (new, log.len())
    };
    let (mut last, mut length) = put(None, 0);
    for n in 1..9 {
        let (new, grown) = put(Some(&last), n);
        assert_eq!(grown - length, 24 + u64::from(PAGE));
        (last, length) = (new, grown);
    }
}

#[test]
fn concurrent_creators_get_one_database() {
    let folder = folder();
    std::thread::scope(|scope| {
        let starters: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| put(&store(&folder), 1)))
            .collect();
        let first = starters
            .into_iter()
            .map(|starter| starter.join().unwrap().unwrap());
        assert_eq!(first.filter(|first| *first).count(), 1);
    });
    let left: Vec<_> = fs::read_dir(folder.path().join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().ends_with(".tmp"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_file_not_made_by_vesta_is_refused_with_advice() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);

    fs::write(
        path("text"),
        "not a database, but long enough to be taken for one".repeat(99),
    )
    .unwrap();
    assert!(refusal(path("text")).contains("restore it, or choose another path"));

    fs::write(path("empty"), "").unwrap();
    assert!(
        refusal(path("empty")).contains("empty, so it is unknown which machine IDs are in use")
    );

    Connection::open(path("other"))
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    assert!(refusal(path("other")).contains("another program; choose another path"));

    drop(at(path("newer")));
    Connection::open(path("newer"))
        .unwrap()
        .pragma_update(None, "user_version", 3)
        .unwrap();
    assert!(refusal(path("newer")).contains("schema version 3, this build of Vesta knows 2"));

    assert!(refusal(path("")).contains("check that the database is a file"));
    assert!(refusal(path("text/below.db")).contains("check the path and its permissions"));

    fs::write(path("lost-wal"), "frames").unwrap();
    assert!(refusal(path("lost")).contains("is missing, but its log"));
}

#[test]
fn a_damaged_database_is_refused() {
    let folder = folder();
    let path = folder.path().join("data/vesta.db");
    put(&store(&folder), 1).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() >= 2 * 512);
    for page in bytes.chunks_mut(512).skip(1) {
        page[..64].fill(0xA5);
    }
    fs::write(&path, bytes).unwrap();
    assert!(refusal(path).contains("the database is damaged"));
}

#[test]
fn a_file_deleted_or_replaced_while_in_use_is_a_permanent_error() {
    for replaced in [false, true] {
        let folder = folder();
        let store = store(&folder);
        put(&store, 1).unwrap();
        let path = folder.path().join("data/vesta.db");
        fs::remove_file(&path).unwrap();
        if replaced {
            drop(at(folder.path().join("new.db")));
            fs::rename(folder.path().join("new.db"), &path).unwrap();
        }
        for _ in 0..2 {
            let error = put(&store, 2).unwrap_err();
            assert!(error.is_permanent(), "{error}");
            assert!(
                error
                    .to_string()
                    .contains("deleted or replaced while in use"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_locked_database_is_unavailable_until_unlocked() {
    let folder = folder();
    let store = store(&folder);
    with_connection(&store, |connection| {
        connection.busy_timeout(Duration::ZERO).unwrap()
    });
    let other = Connection::open(&store.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = put(&store, 1).unwrap_err();
    assert!(!error.is_permanent());
    assert!(
        error
            .to_string()
            .starts_with("the database is locked by another process"),
        "{error}"
    );
    assert_eq!(number(&store), None, "readers do not block writers");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(put(&store, 1).unwrap());
}

#[test]
fn a_full_disk_is_unavailable_until_there_is_space() {
    let folder = folder();
    let store = store(&folder);
    put(&store, 1).unwrap();
    let full = |store: &Database| {
        with_connection(store, |connection| {
            let pages: i32 = connection
                .pragma_query_value(None, "page_count", |r| r.get(0))
                .unwrap();
            let set = |row: &rusqlite::Row<'_>| row.get::<_, i32>(0);
            connection
                .pragma_update_and_check(None, "max_page_count", pages, set)
                .unwrap();
        });
    };
    full(&store);
    let big = "x".repeat(16_384);
    let error = store.put_if("lease/ids", "1", Some("1"), &big).unwrap_err();
    assert!(!error.is_permanent());
    assert!(error.to_string().starts_with("the disk is full"), "{error}");
    assert_eq!(
        number(&store).as_deref(),
        Some("1"),
        "nothing of it was kept"
    );
    // A new connection, without the limit.
    assert!(store.put_if("lease/ids", "1", Some("1"), &big).unwrap());
}

#[test]
fn a_table_with_other_columns_is_reported() {
    let folder = folder();
    let store = store(&folder);
    let other = Connection::open(&store.path).unwrap();
    other
        .execute_batch("DROP TABLE vesta_kv; CREATE TABLE vesta_kv (area, name, value)")
        .unwrap();
    other
        .execute_batch("INSERT INTO vesta_kv VALUES ('lease/ids', '1', x'ff')")
        .unwrap();
    let error = store.get("lease/ids", "1").unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("is not a Vesta record"),
        "{error}"
    );
}

#[test]
fn the_display_form_has_the_path() {
    let folder = folder();
    let path = folder.path().join("v.db");
    let store = crate::open(&format!("sqlite:{}", path.display()).parse().unwrap()).unwrap();
    assert_eq!(store.describe(), format!("SQLite {}", path.display()));
    assert_eq!(store.timing(), Timing::ONE_HOST);
    assert_eq!(store.now().unwrap(), None);
}

#[test]
fn an_invalid_path_is_refused() {
    for url in [
        "sqlite:",
        "sqlite://",
        "sqlite::memory:",
        "sqlite:a.db?mode=ro",
        "sqlite:a\0b",
    ] {
        let opened = url.parse().and_then(|url: StoreUrl| crate::open(&url));
        assert!(
            matches!(opened, Err(OpenError::Malformed { .. })),
            "{url:?}"
        );
    }
}

#[test]
fn without_auto_init_nothing_is_created() {
    let folder = folder();
    let path = folder.path().join("vesta.db");
    let options = Options {
        auto_init: false,
        ..Options::default()
    };
    let refused = |error: StoreError| {
        assert!(
            error.is_permanent() && error.to_string().contains("store init"),
            "{error}"
        );
    };
    let Err(OpenError::Store { source, .. }) = opened(&path, &options) else {
        panic!("opened")
    };
    refused(source);
    assert!(!path.exists());

    assert!(
        at(&path)
            .put_if("lease/known", "namespace", None, "a")
            .unwrap()
    );
    let store = opened(&path, &options).unwrap();
    refused(
        store
            .put_if("lease/unknown", "namespace", None, "a")
            .unwrap_err(),
    );
    refused(store.insert("host", 1).unwrap_err());
    assert_eq!(store.get("lease/unknown", "namespace").unwrap(), None);
    assert!(
        store
            .put_if("lease/known", "namespace", Some("a"), "b")
            .unwrap()
    );
    assert!(store.put_if("lease/known", "7", None, "c").unwrap());
}

#[test]
fn a_number_of_a_worker_node_is_used_once() {
    let folder = folder();
    let path = folder.path().join("vesta.db");
    // Other tables of this host may hold some of the numbers.
    let numbers = [(); 3].map(|()| at(&path).insert("host", 7).unwrap());
    assert!(
        numbers[0] > 0 && numbers.is_sorted_by(|a, b| a < b),
        "{numbers:?}"
    );
    let begin = "UPDATE sqlite_sequence SET seq = 25500 WHERE name = 'WORKER_NODE'";
    Connection::open(&path)
        .unwrap()
        .execute_batch(begin)
        .unwrap();
    assert!(
        at(&path).insert("host", 7).unwrap() > 25500,
        "as a region has it"
    );
}
