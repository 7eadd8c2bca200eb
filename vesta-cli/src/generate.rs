//! `gen`, `make` and `bound`: new IDs, assembled IDs, and the ends of a range.

use std::ops::RangeInclusive;

use serde_json::json;
use vesta_boot::answers::Bounds;
use vesta_boot::settings::{Values, quoted};
use vesta_boot::{Config, Error, TextFormat, assemble, lost_state, period};
use vesta_client::Client;
use vesta_intf::{GenMethod, Id, IdError, IdFormat, IdMeta, IdService, UnixMillis};
use vesta_service::LocalIdService;

use crate::cli::{Access, BoundArgs, GenArgs, MakeArgs};
use crate::http::Http;
use crate::output::{Output, Table, print, record, say};
use crate::sql::condition;
use crate::values::ServerUrl;
use crate::{Answer, Done};
use ureq::http::StatusCode;

/// IDs taken per call: as many as a server returns in one.
const BATCH: u64 = 1000;

pub(crate) fn gen_ids(
    args: &GenArgs,
    settings: impl Fn() -> Result<Values, Error>,
    output: Output,
) -> Done {
    let mut left = args.count;
    let (layout, key) = match args.format.parse::<IdFormat>() {
        Ok(_) => (IdMeta::MAX_PEAK, None), // not used
        Err(_) => {
            let config = Config::check(&settings()?)?;
            (config.ids.layout, config.opaque_key()?)
        }
    };
    let format = TextFormat::find(&args.format, &layout, key.as_ref()).map_err(Error::setting)?;
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
        let lines = ids.iter().map(|id| {
            let id = format.text(*id)?;
            Ok(match output {
                Output::Json => format!("{}\n", json!({ "id": id.as_str() })),
                _ => format!("{id}\n"),
            })
        });
        let lines: Result<String, IdError> = lines.collect();
        print(&lines.map_err(Error::setting)?)?;
        left -= count;
    }
    Ok(Answer::Yes)
}

/// Takes a number of IDs from a source.
type Take = Box<dyn FnMut(usize) -> Result<Vec<u64>, Error>>;

/// A server, by REST or by gRPC.
pub(crate) fn remote(url: &ServerUrl, access: &Access) -> Result<Take, Error> {
    let http = Http::new(url, access)?;
    // A gRPC server answers HTTP/1.1 with this status alone.
    let error = match http.get("/") {
        Ok((StatusCode::MISDIRECTED_REQUEST, said)) => Error::lasting(false, said),
        Ok(_) => return Ok(Box::new(move |count| http.ids(count))),
        Err(error) => error,
    };
    let mut client = Client::builder().endpoint(url.to_string());
    if let Some(token) = &access.token {
        client = client.bearer_token(token.as_str());
    }
    if let Some(pem) = access.ca_pem()? {
        client = client.ca_certificate(pem);
    }
    let mut take = take_from(client.build_blocking().map_err(Error::setting)?);
    Ok(Box::new(move |count| {
        take(count).map_err(|by_grpc| match by_grpc {
            Error::Unavailable(_) => Error::Unavailable(format!("neither REST nor gRPC: {error}")),
            other => other,
        })
    }))
}

fn take_from(service: impl IdService + 'static) -> Take {
    Box::new(move |count| {
        let mut ids = vec![0; count];
        service.gen_ids(&mut ids).map_err(|error| failed(&error))?;
        Ok(ids)
    })
}

/// Error of a failed call: some are temporary, others are about the request.
fn failed(error: &IdError) -> Error {
    Error::lasting(matches!(error.kind().http_status(), 400..=404 | 501), error)
}

/// A service with these settings, as in a server. Its IDs have the genMethod `embedded`, unless the settings
/// say otherwise.
fn embedded(settings: &Values) -> Result<LocalIdService, Error> {
    let config = Config::check(settings)?;
    if let Some(said) = lost_state(&config) {
        say(&format!("warning: {said}"));
    }
    let service = assemble(&config)?.service;
    let is_set = settings.is_explicit("gen_method");
    let gen_method = if is_set {
        config.ids.gen_method
    } else {
        GenMethod::Embed
    };
    service.with_gen_method(gen_method).map_err(Error::setting)
}

pub(crate) fn make(args: &MakeArgs, output: Output) -> Done {
    let MakeArgs {
        time, seq, machine, ..
    } = *args;
    let (layout, blank) = args.upper.blank();
    let id = layout.pack(&Id {
        time,
        seq,
        machine,
        ..blank
    });
    let id = id.map_err(Error::setting)?;
    record(output, format!("{id}\n"), ["id"], [id.to_string().into()])
}

pub(crate) fn bound(args: &BoundArgs, output: Output) -> Done {
    let (layout, base) = args.upper.blank();
    let at = |text: &str| {
        period(text).map_err(|must| Error::setting(format!("TIME {must}, but is {}", quoted(text))))
    };
    let (from, until) = ends(&args.time);
    let (from, until) = (at(from)?, until.map(at).transpose()?);
    let lower = |at: &RangeInclusive<UnixMillis>, base: &Id| {
        layout
            .lower_bound(*at.start(), base)
            .map_err(Error::setting)
    };
    let range = |base: &Id| {
        let first = lower(&from, base)?;
        let last = match &until {
            Some(until) => lower(until, base)?
                .checked_sub(1)
                .filter(|last| *last >= first),
            None => Some(
                layout
                    .upper_bound(*from.end(), base)
                    .map_err(Error::setting)?,
            ),
        };
        let must = "TIME must end in a later tick of the layout than it begins";
        last.map(|last| first..=last)
            .ok_or_else(|| Error::setting(must))
    };
    if let Some(column) = &args.sql {
        let ranges: Result<Vec<_>, _> = args.upper.blanks().iter().map(range).collect();
        return print(&condition(column, &ranges?));
    }
    let (lower, upper) = range(&base)?.into_inner();
    let decimal = TextFormat::Plain(IdFormat::Decimal);
    let bounds = Bounds::new(lower, upper, &layout, &decimal).map_err(Error::setting)?;
    print(&match output {
        Output::Text => format!("{lower} {upper}\n"),
        output => Table::of(&[bounds]).render(output),
    })?;
    if args.upper.blanks().len() > 1 {
        let own = base.gen_method;
        say(&format!(
            "of genMethod {own} alone: --gen-method for another, --sql COLUMN for all"
        ));
    }
    Ok(Answer::Yes)
}

/// `FROM/UNTIL`, or one period; a `/` inside brackets belongs to a zone name.
fn ends(text: &str) -> (&str, Option<&str>) {
    let is_between = |&(at, _): &(usize, &str)| {
        text[..at].matches('[').count() == text[..at].matches(']').count()
    };
    match text.match_indices('/').find(is_between) {
        Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}
