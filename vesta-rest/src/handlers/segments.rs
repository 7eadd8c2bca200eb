//! Segment mode: sequences by tag, as JSON and as in Leaf.

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use vesta_intf::{IdError, IdFormat, IdRun};
use vesta_service::{SegmentService, SegmentTag};

use super::leaf::{decimal, prefers_json};
use super::{in_time, json, no_store, ok};
use crate::app::State;
use crate::dto::{IdText, ManyIds, OneId, SegmentCache, SegmentRow};
use crate::openapi::{BadInput, CannotMake, NoSuchTag, NotOffered, OneOrMany};
use crate::params::Params;
use crate::problem::Problem;

/// Maximum number of numbers per request.
const MAX_COUNT: u64 = 1_000;

fn segments(req: &HttpRequest) -> Result<&SegmentService, IdError> {
    State::of(req).segments.as_deref().ok_or_else(|| IdError::Unsupported {
        what: "segment mode is off; set segment.store (--segment-store)".into(),
    })
}

async fn next(req: &HttpRequest) -> Result<u64, Problem> {
    let (key, service) = (key(req), segments(req)?);
    let limit = State::of(req).request_timeout;
    let next = async { service.segment_async(&key).await?.next_async().await };
    Ok(in_time(limit, next).await?)
}

/// The tag in the path. The router leaves three characters percent-encoded, because decoding them
/// would change where the path is split or how it decodes a second time.
fn key(req: &HttpRequest) -> String {
    let key = req.match_info().query("key").replace("%2F", "/").replace("%2f", "/");
    key.replace("%2B", "+").replace("%2b", "+").replace("%25", "%")
}

/// The next number of a tag, as in Leaf's segment mode
#[utoipa::path(
    get, path = "/api/segment/get/{key}", tag = "leaf",
    params(("key" = String, Path, description = "The business tag", example = "leaf-segment-test")),
    responses(
        (status = 200, description = "The number; `application/json` if `Accept` prefers that, else text.",
         content((String = "text/plain", example = "1001"), (u64 = "application/json", example = 1001))),
        CannotMake, BadInput, NoSuchTag, NotOffered,
    )
)]
pub(crate) async fn leaf_get(req: HttpRequest) -> Result<HttpResponse, Problem> {
    Params::read(req.query_string(), &[])?;
    let number = next(&req).await?;
    Ok(decimal(&req, super::digits(number)))
}

/// The next numbers of a tag
///
/// Dense and increasing. The numbers of one server and tag strictly increase; those of several servers
/// never overlap.
#[utoipa::path(
    get, path = "/v1/segments/{key}/next", tag = "segments",
    params(
        ("key" = String, Path, description = "The business tag", example = "orders"),
        ("count" = Option<u64>, Query, minimum = 1, maximum = 1000,
         description = "How many, 1 to 1,000. Left out: one, as `id`; else a list, as `ids`"),
    ),
    responses(
        (status = 200, body = OneOrMany, description = "The number; with `count` a list under `ids`, ascending."),
        CannotMake, BadInput, NoSuchTag, NotOffered,
    )
)]
pub(crate) async fn v1_next(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["count"])?;
    let Some(count) = params.optional("count", 1, MAX_COUNT)? else {
        return Ok(no_store(json(&OneId { id: number(next(&req).await?) })));
    };
    let count = u32::try_from(count).expect("at most MAX_COUNT");
    let (key, service) = (key(&req), segments(&req)?);
    let limit = State::of(&req).request_timeout;
    let runs = async { service.segment_async(&key).await?.next_runs_async(count).await };
    let runs = in_time(limit, runs).await?;
    let ids = runs.iter().flat_map(IdRun::iter).map(number).collect();
    Ok(no_store(json(&ManyIds { ids })))
}

fn number(id: u64) -> IdText {
    IdText { id, format: IdFormat::Decimal }
}

/// In-memory ranges of each tag
///
/// An HTML page; JSON if `Accept` prefers that.
#[utoipa::path(
    get, path = "/cache", tag = "leaf",
    responses(
        (status = 200, description = "One entry for each tag.",
         content((Vec<SegmentCache> = "application/json"), (String = "text/html"))),
        BadInput, NotOffered,
    )
)]
pub(crate) async fn cache(req: HttpRequest) -> Result<HttpResponse, Problem> {
    Params::read(req.query_string(), &[])?;
    let rows: Vec<_> = segments(&req)?.status().into_iter().map(SegmentCache::from).collect();
    if prefers_json(&req) {
        return Ok(no_store(json(&rows)));
    }
    let head =
        ["tag", "position", "current range", "next ranges", "step", "a second", "last error"];
    let cells = rows.iter().map(|row| {
        let range = |range: &[String; 2]| format!("{} – {}", range[0], range[1]);
        [
            row.key.clone(),
            row.position.clone(),
            row.current.as_ref().map_or(String::new(), range),
            row.next.iter().map(range).collect::<Vec<_>>().join(", "),
            row.step.to_string(),
            row.per_second.to_string(),
            row.last_error.clone().unwrap_or_default(),
        ]
    });
    Ok(page("Ranges in memory", &head, cells))
}

/// Rows of the segment table
///
/// An HTML page; JSON if `Accept` prefers that. Read from the database at each request.
#[utoipa::path(
    get, path = "/db", tag = "leaf",
    responses(
        (status = 200, description = "One entry for each row.",
         content((Vec<SegmentRow> = "application/json"), (String = "text/html"))),
        CannotMake, BadInput, NotOffered,
    )
)]
pub(crate) async fn db(req: HttpRequest) -> Result<HttpResponse, Problem> {
    Params::read(req.query_string(), &[])?;
    segments(&req)?;
    let service = State::of(&req).segments.clone();
    // The store's calls block.
    let read = tokio::task::spawn_blocking(move || service.map(|service| service.tags()));
    let tags: Vec<SegmentTag> = match read.await {
        Ok(Some(Ok(tags))) => tags,
        Ok(Some(Err(error))) => {
            let reason = error.to_string().into();
            return Err(IdError::Unavailable { reason, retry_after: None, source: None }.into());
        }
        _ => return Err(IdError::DeadlineExceeded.into()),
    };
    let rows: Vec<_> = tags.into_iter().map(SegmentRow::from).collect();
    if prefers_json(&req) {
        return Ok(no_store(json(&rows)));
    }
    let head = ["biz_tag", "max_id", "step", "description", "update_time"];
    let cells = rows.iter().map(|row| {
        [
            row.biz_tag.clone(),
            row.max_id.clone(),
            row.step.to_string(),
            row.description.clone().unwrap_or_default(),
            row.update_time.clone().unwrap_or_default(),
        ]
    });
    Ok(page("Rows of leaf_alloc", &head, cells))
}

/// An HTML table without external resources.
fn page<const N: usize>(
    title: &str,
    head: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> HttpResponse {
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = String>| {
        texts.map(|text| format!("<{tag}>{}</{tag}>", escaped(&text))).collect::<String>()
    };
    let mut html = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Vesta: {title}</title>\
         <style>body{{font:15px system-ui;margin:2em}}td,th{{padding:.3em .8em;text-align:left;\
         border-bottom:1px solid #ccc}}td{{font-variant-numeric:tabular-nums}}</style>\
         <h1>{title}</h1><table><tr>{}</tr>",
        cells("th", &mut head.iter().map(|&text| text.to_owned()))
    );
    for row in rows {
        html.push_str(&format!("<tr>{}</tr>", cells("td", &mut row.into_iter())));
    }
    html.push_str("</table><p><a href=\"cache\">/cache</a> <a href=\"db\">/db</a></p>");
    no_store(ok("text/html; charset=utf-8", Bytes::from(html)))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
