//! Machine IDs that other systems keep in a database.

use sqlx::mysql::MySqlConnection;
use sqlx::{Connection as _, Row as _};
use vesta_explain::layouts;
use vesta_intf::IdMeta;

use super::databases::Database;
use crate::machines::Fleet;
use crate::programs::command;

/// Runs a stand-in over its own connection.
fn connected<T>(url: &str, work: impl AsyncFnOnce(&mut MySqlConnection) -> sqlx::Result<T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut connection = MySqlConnection::connect(url)
            .await
            .expect("the test server answers");
        work(&mut connection).await.expect("it answers")
    })
}

#[test]
fn from_the_java_vesta_and_back() {
    let rows: Vec<_> = (0..64).map(|id| format!("({id}, NULL)")).collect();
    let database = Database::with(&format!(
        "CREATE TABLE DB_MACHINE_ID_PROVIDER (ID bigint NOT NULL, IP varchar(64) DEFAULT NULL, \
         PRIMARY KEY (ID), UNIQUE KEY UK_IP (IP)) ENGINE = InnoDB; \
         INSERT INTO DB_MACHINE_ID_PROVIDER (ID, IP) VALUES {}",
        rows.join(", ")
    ));
    let url = database.url();
    // The row with its address, otherwise the first free one.
    let start = |address: &str| {
        connected(&url, async |connection: &mut MySqlConnection| {
            let (ip, _) = address.split_once(':').expect("an address");
            let own = sqlx::query("select ID from DB_MACHINE_ID_PROVIDER where IP = ?").bind(ip);
            if let Some(row) = own.fetch_optional(&mut *connection).await? {
                return row.try_get::<i64, _>(0);
            }
            let free = "select ID from DB_MACHINE_ID_PROVIDER where IP is null limit 1";
            let id: i64 = sqlx::query(free)
                .fetch_one(&mut *connection)
                .await?
                .try_get(0)?;
            sqlx::query("update DB_MACHINE_ID_PROVIDER set IP = ? where IP is null and ID = ?")
                .bind(ip)
                .bind(id)
                .execute(connection)
                .await?;
            Ok(id)
        })
        .unsigned_abs()
    };
    let (flags, from) = (["--machine-store", &url], ["vesta-db", "--from", &url]);
    let import = Some((&from[..], "512-1023"));
    Fleet {
        layout: IdMeta::MAX_PEAK,
        start: &start,
        flags: &flags,
        import,
    }
    .moves();
}

#[test]
fn from_cosids_machine_ids_and_back() {
    let database = Database::with(
        "create table if not exists cosid_machine (name varchar(100) not null, \
         namespace varchar(100) not null, machine_id integer unsigned not null default 0, \
         last_timestamp bigint unsigned not null default 0, \
         instance_id varchar(100) not null default '', \
         distribute_time bigint unsigned not null default 0, \
         revert_time bigint unsigned not null default 0, primary key (name)) engine = InnoDB",
    );
    let url = database.url();
    let now = "cast(unix_timestamp(now(3)) * 1000 as unsigned)";
    // The row of its instance, otherwise the next number.
    let start = |instance: &str| {
        connected(&url, async |connection: &mut MySqlConnection| {
            let own = sqlx::query(
                "select machine_id, last_timestamp from cosid_machine where namespace='shop' and \
                 instance_id=? and last_timestamp>0",
            );
            if let Some(row) = own.bind(instance).fetch_optional(&mut *connection).await? {
                return row.try_get::<u32, _>(0);
            }
            let next = "select cast(coalesce(max(machine_id)+1, 0) as unsigned) as next_machine_id from \
                        cosid_machine where namespace='shop'";
            let next: u64 = sqlx::query(next).fetch_one(&mut *connection).await?.try_get(0)?;
            let insert = format!(
                "insert into cosid_machine (name, namespace, machine_id, last_timestamp, instance_id, \
                 distribute_time, revert_time) values (?, 'shop', ?, {now}, ?, {now}, 0)"
            );
            sqlx::query(sqlx::AssertSqlSafe(insert))
                .bind(format!("shop.{next:08}"))
                .bind(next)
                .bind(instance)
                .execute(connection)
                .await?;
            Ok(u32::try_from(next).expect("small"))
        })
        .into()
    };
    let flags = ["--layout=cosid", "--machine-store", &url];
    let from = ["cosid", "--cosid-namespace=shop", "--from", &url];
    let import = Some((&from[..], "512-1023"));
    Fleet {
        layout: layouts::COSID,
        start: &start,
        flags: &flags,
        import,
    }
    .moves();
}

/// Nothing is imported: both take numbers from one table, and no number is used twice.
#[test]
fn from_uid_generator_and_back() {
    let database = Database::with(
        "CREATE TABLE WORKER_NODE (ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, \
         PORT VARCHAR(64) NOT NULL, TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, \
         MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, \
         CREATED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (ID)) ENGINE = INNODB",
    );
    let url = database.url();
    let start = |address: &str| {
        connected(&url, async |connection: &mut MySqlConnection| {
            let (host, port) = address.split_once(':').expect("an address");
            let insert = "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
                          VALUES (?, ?, 2, NOW(), NOW(), NOW())";
            let done = sqlx::query(insert)
                .bind(host)
                .bind(port)
                .execute(connection)
                .await?;
            Ok(done.last_insert_id())
        })
    };
    let flags = [
        "--layout=uid-boot",
        "--machine-strategy=disposable",
        "--machine-store",
        &url,
    ];
    Fleet {
        layout: layouts::UID_BOOT,
        start: &start,
        flags: &flags,
        import: None,
    }
    .moves();
}

/// Without the privilege, a server that replicates from another one looks like any other.
#[test]
fn doctor_says_which_privilege_shows_whether_the_server_replicates() {
    let database = Database::with("SELECT 1");
    let (name, url) = (database.name(), database.url());
    database.run(&format!(
        "CREATE USER {name}@'%' IDENTIFIED BY 'app'; GRANT ALL ON {name}.* TO {name}@'%'"
    ));
    let (_, at) = url.split_once('@').expect("a login");
    let folder = tempfile::tempdir().expect("a folder");
    let init = ["--machine-store", &url, "store", "init"];
    let done = command("vesta-server", folder.path(), &init).output();
    assert!(done.expect("it starts").status.success());
    let doctor = |url: &str| {
        let mut asked = command("vesta", folder.path(), &["doctor", "--machine-store", url]);
        String::from_utf8(asked.output().expect("it runs").stdout).expect("text")
    };
    let said = doctor(&format!("mysql://{name}:app@{at}"));
    let all = doctor(&url);
    database.run(&format!("DROP USER {name}@'%'"));
    assert!(
        said.contains("may not see whether server") && said.contains("run `GRANT"),
        "{said}"
    );
    assert!(!all.contains("may not see whether"), "{all}");
}
