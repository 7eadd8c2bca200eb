//! The stop of an idle server: from SIGTERM until the process is gone.

use crate::Failure;
use crate::load::{Protocol, grpc, rest};
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};

/// Limit in milliseconds.
const MOST: f64 = 50.0;

pub(crate) async fn measure(programs: &Programs, rounds: usize) -> Result<Table, Failure> {
    let mut table = Table {
        title: "Stop of an idle server",
        about: "From SIGTERM until the process has ended; an open connection has answered once."
            .to_owned(),
        headings: vec!["program", "open connections", "ms"],
        rows: vec![],
        bars: vec![],
    };
    for protocol in [Protocol::Grpc, Protocol::Rest] {
        for connections in [0, 1] {
            let (mut times, mut name) = (Vec::new(), "");
            for _ in 0..rounds {
                let server = programs.vesta(protocol, None)?;
                name = server.name;
                let address = server.address;
                let stop = || Ok::<_, Failure>(server.stop()?.as_secs_f64() * 1000.0);
                times.push(match (protocol, connections) {
                    (_, 0) => stop()?,
                    (Protocol::Grpc, _) => {
                        let _open = grpc::callers(address, connections).await?;
                        stop()?
                    }
                    _ => {
                        let _open = rest::callers(rest::TEXT, address, connections).await?;
                        stop()?
                    }
                });
            }
            table.bars.push(Bar {
                what: format!("{name}, {connections} open connections: stop, ms"),
                values: times.clone(),
                limit: Limit::AtMost(MOST),
            });
            let labels = vec![name.to_owned(), connections.to_string()];
            table.rows.push(Row {
                labels,
                cells: vec![Cell(times, 1)],
            });
        }
    }
    Ok(table)
}
