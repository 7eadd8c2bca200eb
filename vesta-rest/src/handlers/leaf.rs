//! Leaf-compatible endpoints: the same paths, parameters and bodies.

use std::sync::Arc;

use actix_web::http::header::{self, Accept, Header as _, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use vesta_boot::admin::TABLE;
use vesta_intf::IdError;

use super::pages::styled;
use super::segments::next_number;
use super::vesta::in_system_zone;
use super::{Answer, new_id, with_once};
use crate::dto::{LeafDecoded, SegmentCache, SegmentRow};
use crate::responses::{JSON, json, no_store, text};
use crate::state::Call;

pub(crate) async fn snowflake(call: Call) -> Answer {
    let once = call.params.once()?;
    Ok(digits(&call.req, new_id(&call).await?, once))
}

pub(crate) async fn segment(call: Call) -> Answer {
    let once = call.params.once()?;
    Ok(digits(&call.req, next_number(&call).await?, once))
}

pub(crate) async fn decode(call: Call) -> Answer {
    let service = &call.running().service;
    let raw = call.params.number("snowflakeId", 0, u64::MAX)?;
    let id = service.exp_id(raw)?;
    let moment = service.meta().explaining(raw).moment_of(id.time)?;
    let readable = in_system_zone(moment, "%Y-%m-%d %H:%M:%S%.3f");
    Ok(json(&LeafDecoded {
        timestamp: format!("{}({readable})", moment.0),
        worker_id: id.machine.to_string(),
        sequence_id: id.seq.to_string(),
    }))
}

pub(crate) async fn cache(call: Call) -> Answer {
    let rows: Vec<_> = call
        .running()
        .segments()?
        .status()
        .into_iter()
        .map(SegmentCache::from)
        .collect();
    let head = [
        "tag",
        "position",
        "current range",
        "next ranges",
        "step",
        "per second",
        "last error",
    ];
    let classes = ["", "n", "n", "n", "n", "n", "bad"];
    Ok(table(
        &call,
        "Ranges in memory",
        head,
        classes,
        rows,
        |row| {
            let range = |[from, to]: [String; 2]| format!("{from} – {to}");
            [
                row.key,
                row.position,
                row.current.map_or(String::new(), range),
                row.next
                    .into_iter()
                    .map(range)
                    .collect::<Vec<_>>()
                    .join(", "),
                row.step.to_string(),
                row.per_second.to_string(),
                row.last_error.unwrap_or_default(),
            ]
        },
    ))
}

pub(crate) async fn db(call: Call) -> Answer {
    let service = Arc::clone(call.running().segments()?);
    // Store calls block.
    let read = tokio::task::spawn_blocking(move || service.tags());
    let tags = match read.await {
        Ok(Ok(tags)) => tags,
        Ok(Err(error)) => {
            let reason = error.to_string().into();
            return Err(IdError::Unavailable {
                reason,
                retry_after: None,
                source: None,
            }
            .into());
        }
        _ => return Err(IdError::DeadlineExceeded.into()),
    };
    let rows: Vec<_> = tags.into_iter().map(SegmentRow::from).collect();
    let head = ["biz_tag", "max_id", "step", "description", "update_time"];
    let classes = ["", "n", "n", "", ""];
    Ok(table(
        &call,
        "Rows of the segment table",
        head,
        classes,
        rows,
        |row| {
            let optional = Option::unwrap_or_default;
            let step = row.step.to_string();
            [
                row.biz_tag,
                row.max_id,
                step,
                optional(row.description),
                optional(row.update_time),
            ]
        },
    ))
}

/// A number as Leaf sends it: the same digits under whichever of the two media types is preferred; with `once`, text.
fn digits(req: &HttpRequest, number: u64, once: Option<String>) -> HttpResponse {
    let is_json = once.is_none() && prefers_json(req);
    let mut response = no_store(text(with_once(number.to_string(), once)));
    if is_json {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    response
}

/// True if `Accept` ranks JSON before text; false without that header.
fn prefers_json(req: &HttpRequest) -> bool {
    let Ok(accept) = Accept::parse(req) else {
        return false;
    };
    let ranked = accept.ranked();
    let text = ["text/plain", "text/html", "text/*"];
    let mut offered = ranked.iter().map(|media| media.essence_str());
    offered.find(|media| *media == JSON || text.contains(media)) == Some(JSON)
}

/// Rows as JSON, or as a page with a table. Each column has a name and a CSS class.
fn table<T: Serialize, const N: usize>(
    call: &Call,
    title: &str,
    head: [&str; N],
    classes: [&str; N],
    rows: Vec<T>,
    cells: impl Fn(T) -> [String; N],
) -> HttpResponse {
    if prefers_json(&call.req) {
        return no_store(json(&rows));
    }
    let line = |tag: &str, cells: [String; N]| {
        let columns = head.iter().zip(classes).zip(cells);
        let cells = columns.map(|((name, class), text)| {
            let text = escaped(&text);
            format!("<{tag} class=\"{class}\" data-name=\"{name}\">{text}</{tag}>")
        });
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let body: String = rows.into_iter().map(|row| line("td", cells(row))).collect();
    let names = line("th", head.map(str::to_owned));
    let rows = format!("<thead>{names}</thead><tbody>{body}</tbody>");
    no_store(styled(
        TABLE.replace("{title}", title).replace("{rows}", &rows),
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
