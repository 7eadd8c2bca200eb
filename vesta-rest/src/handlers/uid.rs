//! uid-generator-compatible endpoints, for a server with its layout.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};
use vesta_boot::Outcome;
use vesta_intf::{IdError, IdMeta, LayoutSpec};

use super::vesta::in_system_zone;
use super::{digits, json, new_id, no_store, text};
use crate::app::State;
use crate::dto::UidParsed;
use crate::openapi::{BadInput, CannotMake, NotOffered};
use crate::params::Params;
use crate::problem::Problem;

/// A new UID
///
/// Only from a server with the widths of uid-generator: 28 bits of seconds, 22 of workers, 13 of
/// sequence.
#[utoipa::path(
    get, path = "/uid/get", tag = "uid",
    responses(
        (status = 200, description = "The UID in decimal digits.", body = String,
         content_type = "text/plain", example = "3516414031872"),
        CannotMake, NotOffered,
    )
)]
pub(crate) async fn get(req: HttpRequest, method: usize) -> HttpResponse {
    if let Err(error) = must_make_uids(&req) {
        let problem = Problem::from(error);
        State::of(&req).metrics.observe(method, Outcome::Error(problem.kind()), Duration::ZERO);
        return problem.response();
    }
    match new_id(&req, method).await {
        Ok(id) => no_store(text(digits(id))),
        Err(problem) => problem.response(),
    }
}

/// The fields of a UID
///
/// As uid-generator's `parseUID` returns them. The moment is in the server's time zone.
#[utoipa::path(
    get, path = "/uid/parse", tag = "uid",
    params(("uid" = String, Query, description = "The UID in decimal digits", example = "3516414031872")),
    responses(
        (status = 200, description = "Every member is a string.", body = UidParsed),
        BadInput,
    )
)]
pub(crate) async fn parse(req: HttpRequest) -> Result<HttpResponse, Problem> {
    let params = Params::read(req.query_string(), &["uid"])?;
    let meta = uid_layout(&req);
    let raw = params.number("uid", 0, u64::MAX)?;
    let id = meta.unpack(raw)?;
    Ok(json(&UidParsed {
        uid: raw.to_string(),
        timestamp: in_system_zone(meta.moment_of(id.time)?, "%Y-%m-%d %H:%M:%S"),
        worker_id: id.machine.to_string(),
        sequence: id.seq.to_string(),
    }))
}

/// The server's layout if it is uid-generator's, else uid-generator's default.
fn uid_layout(req: &HttpRequest) -> IdMeta {
    let own = *State::of(req).service.meta();
    if is_uid(&own) { own } else { IdMeta::UID }
}

/// Compares all but the epoch: the default's time field ran out in 2024.
fn is_uid(meta: &IdMeta) -> bool {
    LayoutSpec { epoch: IdMeta::UID.spec().epoch, ..*meta.spec() } == *IdMeta::UID.spec()
}

fn must_make_uids(req: &HttpRequest) -> Result<(), IdError> {
    let meta = State::of(req).service.meta();
    if is_uid(meta) {
        return Ok(());
    }
    let what = format!(
        "a UID: this server makes IDs of layout {}; start one with the widths of uid-generator \
         (docs/FROM-UID-GENERATOR.md), or use /genid",
        meta.name()
    );
    Err(IdError::Unsupported { what: what.into() })
}
