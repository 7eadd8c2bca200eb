//! An ID passes from the service through a table to JSON unchanged.

use std::io::Write as _;
use std::process::{Command, Stdio};

use axum::Json;
use axum::response::IntoResponse as _;
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, ExpressionMethods as _, QueryDsl as _, RunQueryDsl as _};
use serde::Serialize;
use vesta_service::{LocalIdService, MachineSource, VestaId};

const TABLE: &str = "CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY)";

fn new_id() -> VestaId {
    let builder = LocalIdService::builder().machine(MachineSource::Stateless(1));
    builder.build().unwrap().next().unwrap()
}

/// An ID of version 1.
fn sign_bit() -> VestaId {
    VestaId::from(1 << 63)
}

macro_rules! through_a_table {
    ($pool:expr, $placeholder:literal) => {{
        let pool = $pool;
        let id = new_id();
        sqlx::query(TABLE).execute(&pool).await.unwrap();
        let insert = concat!("INSERT INTO orders VALUES (", $placeholder, ")");
        sqlx::query(insert).bind(id).execute(&pool).await.unwrap();
        let select = concat!("SELECT id FROM orders WHERE id = ", $placeholder);
        let read: VestaId = sqlx::query_scalar(select)
            .bind(id)
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(read, id);
        let none: Option<VestaId> = sqlx::query_scalar("SELECT NULL")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(none, None);

        let refused = sqlx::query(insert).bind(sign_bit()).execute(&pool).await;
        assert!(refused.unwrap_err().to_string().contains("version 1"));
        let negative = sqlx::query_scalar::<_, VestaId>("SELECT -id FROM orders");
        assert!(
            negative
                .fetch_one(&pool)
                .await
                .unwrap_err()
                .to_string()
                .contains("version 1")
        );
        pool.close().await;
    }};
}

/// The URL of a throw-away server; `None` if the variable is not set.
fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        eprintln!("not tested: {variable} is not set");
    }
    url
}

#[tokio::test]
async fn sqlite_returns_the_id_that_was_inserted() {
    let options = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
    through_a_table!(options.connect("sqlite::memory:").await.unwrap(), "$1");
}

#[tokio::test]
async fn postgres_returns_the_id_that_was_inserted() {
    let Some(url) = server("VESTA_TEST_POSTGRES") else {
        return;
    };
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    through_a_table!(options.connect(&url).await.unwrap(), "$1");
}

#[tokio::test]
async fn mysql_returns_the_id_that_was_inserted() {
    let Some(url) = server("VESTA_TEST_MYSQL") else {
        return;
    };
    let options = sqlx::mysql::MySqlPoolOptions::new().max_connections(1);
    through_a_table!(options.connect(&url).await.unwrap(), "?");
}

diesel::table! {
    orders (id) {
        id -> BigInt,
    }
}

#[derive(Debug, PartialEq, diesel::Insertable, diesel::Queryable)]
#[diesel(table_name = orders)]
struct Order {
    id: VestaId,
}

#[test]
fn diesel_returns_the_id_that_was_inserted() {
    let mut db = diesel::SqliteConnection::establish(":memory:").unwrap();
    db.batch_execute(TABLE).unwrap();
    let order = Order { id: new_id() };
    diesel::insert_into(orders::table)
        .values(&order)
        .execute(&mut db)
        .unwrap();
    let read = orders::table
        .filter(orders::id.eq(order.id))
        .first::<Order>(&mut db)
        .unwrap();
    assert_eq!(read, order);

    let refused = diesel::insert_into(orders::table)
        .values(Order { id: sign_bit() })
        .execute(&mut db);
    assert!(refused.unwrap_err().to_string().contains("version 1"));
    db.batch_execute("INSERT INTO orders VALUES (-1)").unwrap();
    let negative = orders::table
        .filter(orders::id.lt(0))
        .first::<Order>(&mut db);
    let negative = format!("{:?}", negative.unwrap_err());
    assert!(negative.contains("version 1"), "{negative}");
}

#[derive(Serialize)]
struct Answer {
    id: VestaId,
    #[serde(with = "vesta_service::contract::id_as_number")]
    rounded: VestaId,
}

#[tokio::test]
async fn node_reads_the_string_exactly_and_rounds_the_number() {
    if Command::new("node").arg("--version").output().is_err() {
        return eprintln!("not tested: no node");
    }
    let id = VestaId::from((1 << 53) + 1);
    let body = Json(Answer { id, rounded: id }).into_response().into_body();
    let json = axum::body::to_bytes(body, 1000).await.unwrap();
    let script = "const { id, rounded } = JSON.parse(require('fs').readFileSync(0));
        console.log(BigInt(id) + ' ' + BigInt(rounded))";
    let mut node = Command::new("node");
    node.args(["-e", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    node.stdin.take().unwrap().write_all(&json).unwrap();
    let output = node.wait_with_output().unwrap();
    let read = String::from_utf8(output.stdout).unwrap();
    assert_eq!(read.trim(), "9007199254740993 9007199254740992");
}
