//! From a start to the first ID, beside a program that only prints a line.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use tokio::time::Instant;
use vesta_service::{LocalIdService, MachineSource};

use crate::Failure;
use crate::programs::Programs;
use crate::report::{Cell, Row, Table};

pub(crate) fn measure(programs: &Programs, rounds: usize) -> Result<Table, Failure> {
    let server = programs.pool_server()?;
    let pool = format!("--machine-store=vesta://{}", server.address);
    type Start<'a> = Box<dyn Fn() -> Result<f64, Failure> + 'a>;
    let make = |name, flags: &[&str]| programs.vesta_gen(name, flags);
    let starts: [(&str, Start<'_>); 6] = [
        (
            "echo, which only prints a line",
            Box::new(|| first_line(Command::new("echo").arg("1"))),
        ),
        (
            "embedded, fixed machine ID: build and one call",
            Box::new(|| embedded(programs)),
        ),
        (
            "vesta gen, fixed machine ID",
            Box::new(|| first_line(&mut make("fixed", &["--machine-id=7"])?)),
        ),
        (
            "vesta gen, pool in SQLite",
            Box::new(|| first_line(&mut make("sqlite", &[])?)),
        ),
        (
            "vesta gen, pool server",
            Box::new(|| first_line(&mut make("member", &[&pool])?)),
        ),
        (
            "vesta serve, pool in SQLite",
            Box::new(|| {
                let began = Instant::now();
                let server = programs.vesta_serve(None)?;
                let took = millis(began);
                server.stop()?;
                Ok(took)
            }),
        ),
    ];
    let mut rows = starts.each_ref().map(|(name, _)| Row {
        labels: vec![(*name).to_owned()],
        cells: vec![Cell(vec![], 2)],
    });
    // Round 0 is a warm-up: it creates the files.
    for round in 0..=rounds {
        for ((_, start), row) in starts.iter().zip(&mut rows) {
            let took = start()?;
            if round > 0 {
                row.cells[0].0.push(took);
            }
        }
    }
    Ok(Table {
        title: "From a start to the first ID",
        about: "From before the program is executed until it has printed its first ID, in turns. Each start follows a \
                clean stop, on one host; a server prints its first ID when its listeners are bound."
            .to_owned(),
        headings: vec!["program", "ms"],
        rows: rows.into(),
        bars: vec![],
    })
}

fn millis(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1000.0
}

/// From before the start of a program until its first line of output is there.
fn first_line(command: &mut Command) -> Result<f64, Failure> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().expect("stdout is piped");
    BufReader::new(output).read_line(&mut line)?;
    let took = millis(began);
    let status = child.wait()?;
    if !status.success() || line.trim().parse::<u64>().is_err() {
        return Err(format!("{command:?}: {line:?} instead of an ID, {status}").into());
    }
    Ok(took)
}

fn embedded(programs: &Programs) -> Result<f64, Failure> {
    let began = Instant::now();
    let service = LocalIdService::builder()
        .namespace("embedded")
        .machine(MachineSource::Fixed(7))
        .state_dir(programs.folder())
        .build()?;
    service.gen_id()?;
    Ok(millis(began))
}
