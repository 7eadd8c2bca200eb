//! `gen`, `make` and `bound`: IDs that are new, put together, or the ends of a range.

use std::io::{self, Write as _};

use serde_json::json;
use vesta_boot::settings::Values;
use vesta_boot::{Config, Error, assemble};
use vesta_client::{Client, ErrorKind};
use vesta_intf::{Field, Id, IdError, IdFormat, IdMeta, IdService};
use vesta_service::LocalIdService;

use crate::cli::{Access, BoundArgs, GenArgs, MakeArgs, UpperFields};
use crate::http::Http;
use crate::output::{Output, print, written};
use crate::time::moment;
use crate::{Answer, Done};

/// IDs that are taken at a time: as many as a server gives in one call.
const BATCH: u64 = 1000;

pub(crate) fn gen_ids(
    args: &GenArgs,
    settings: impl FnOnce() -> Result<Values, Error>,
    output: Output,
) -> Done {
    let mut left = args.count;
    let mut take = match &args.server {
        Some(url) => remote(url, &args.access)?,
        None => take_from(embedded(&settings()?)?),
    };
    if output == Output::Csv {
        print("id\n")?;
    }
    while left > 0 {
        let count = left.min(BATCH);
        let ids = take(usize::try_from(count).unwrap_or(1))?;
        written(write_ids(&ids, args.format, output))?;
        left -= count;
    }
    Ok(Answer::Yes)
}

fn write_ids(ids: &[u64], format: IdFormat, output: Output) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for id in ids {
        let id = format.format(*id);
        match output {
            Output::Json => writeln!(out, "{}", json!({ "id": id.as_str() }))?,
            _ => writeln!(out, "{id}")?,
        }
    }
    out.flush()
}

type Take = Box<dyn FnMut(usize) -> Result<Vec<u64>, Error>>;

/// A call of a server for one ID.
pub(crate) fn one_by_one(
    url: &str,
    access: &Access,
) -> Result<impl FnMut() -> Result<(), Error>, Error> {
    let mut take = remote(url, access)?;
    Ok(move || take(1).map(|_| ()))
}

/// A server, by REST or by gRPC.
fn remote(url: &str, access: &Access) -> Result<Take, Error> {
    let http = Http::new(url, access)?;
    // A gRPC server does not speak HTTP/1.1, and says so by closing the connection.
    match http.ids(1) {
        Ok(first) => {
            let mut first = Some(first);
            Ok(Box::new(move |count| match first.take() {
                Some(mut ids) if count > 1 => {
                    ids.extend(http.ids(count - 1)?);
                    Ok(ids)
                }
                Some(ids) => Ok(ids),
                None => http.ids(count),
            }))
        }
        Err(error) if !http.answered() => {
            let mut client = Client::builder().endpoint(url);
            if let Some(token) = &access.token {
                client = client.bearer_token(token.as_str());
            }
            if let Some(pem) = access.ca_pem()? {
                client = client.ca_certificate(pem);
            }
            let client = client.build_blocking().map_err(Error::setting)?;
            let mut take = take_from(client);
            Ok(Box::new(move |count| {
                take(count).map_err(|by_grpc| match by_grpc {
                    Error::Unavailable(_) => {
                        Error::Unavailable(format!("{error}, neither by REST nor by gRPC"))
                    }
                    other => other,
                })
            }))
        }
        Err(error) => Err(error),
    }
}

fn take_from(service: impl IdService + 'static) -> Take {
    Box::new(move |count| {
        let mut ids = vec![0; count];
        service.gen_ids(&mut ids).map_err(|error| failed(&error))?;
        Ok(ids)
    })
}

/// A call that failed: some errors pass, others are about what was asked.
pub(crate) fn failed(error: &IdError) -> Error {
    let asked_wrongly = matches!(
        error.kind(),
        ErrorKind::Invalid
            | ErrorKind::OutOfRange
            | ErrorKind::Unsupported
            | ErrorKind::Unauthenticated
            | ErrorKind::PermissionDenied
    );
    Error::lasting(asked_wrongly, error)
}

/// A service of these settings, as a server has it.
fn embedded(settings: &Values) -> Result<LocalIdService, Error> {
    let config = Config::check(settings)?;
    let service = assemble(&config)?.service;
    service.with_gen_method(config.ids.gen_method).map_err(Error::setting)
}

impl UpperFields {
    /// The fields above the time, in a layout.
    pub(crate) fn blank(&self, layout: &IdMeta) -> Id {
        let own = if layout.bits(Field::GenMethod) == 0 { 0 } else { 2 };
        let gen_method = self.gen_method.unwrap_or(own);
        Id { gen_method, version: self.id_version, ..layout.blank() }
    }
}

pub(crate) fn make(args: &MakeArgs, output: Output) -> Done {
    let MakeArgs { time, seq, machine, .. } = *args;
    let layout = &args.layout.layout;
    let id = layout.pack(&Id { time, seq, machine, ..args.upper.blank(layout) });
    let id = id.map_err(Error::setting)?.to_string();
    print(&match output {
        Output::Text => format!("{id}\n"),
        Output::Json => format!("{}\n", json!({ "id": id })),
        Output::Csv => format!("id\n{id}\n"),
    })?;
    Ok(Answer::Yes)
}

pub(crate) fn bound(args: &BoundArgs, output: Output) -> Done {
    let layout = &args.layout.layout;
    let base = args.upper.blank(layout);
    let at = |text: &str| {
        moment(text).map_err(|must| Error::setting(format!("TIME {must}, but is `{text}`")))
    };
    let (from, until) = match args.time.split_once('/') {
        Some((from, until)) => (at(from)?, Some(at(until)?)),
        None => (at(&args.time)?, None),
    };
    if until.is_some_and(|until| until <= from) {
        return Error::refuse("TIME must end after it begins");
    }
    let lower = layout.lower_bound(from, &base).map_err(Error::setting)?;
    // Of a range the end is excluded, of a single tick it is the last ID.
    let upper = match until {
        Some(until) => layout.lower_bound(until, &base),
        None => layout.upper_bound(from, &base),
    };
    let upper = upper.map_err(Error::setting)?;
    let names = if until.is_some() { ["lower", "below"] } else { ["lower", "upper"] };
    let sign = if until.is_some() { "<" } else { "<=" };
    print(&match (&args.sql, output) {
        (Some(column), _) => {
            let signed = |id: u64| id.cast_signed();
            format!("{column} >= {} AND {column} {sign} {}\n", signed(lower), signed(upper))
        }
        (None, Output::Text) => format!("{lower} {upper}\n"),
        (None, Output::Csv) => format!("{},{}\n{lower},{upper}\n", names[0], names[1]),
        (None, Output::Json) => {
            let json = json!({ names[0]: lower.to_string(), names[1]: upper.to_string() });
            format!("{json}\n")
        }
    })?;
    Ok(Answer::Yes)
}
