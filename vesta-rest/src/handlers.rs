//! Handlers: Vesta's own four endpoints, the JSON API, the endpoints of Leaf, uid-generator and
//! Tinyid, and the documentation pages.

pub(crate) mod leaf;
pub(crate) mod pages;
pub(crate) mod segments;
pub(crate) mod serials;
pub(crate) mod tinyid;
pub(crate) mod uid;
pub(crate) mod v1;
pub(crate) mod vesta;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use vesta_boot::answers::IdText;
use vesta_intf::AsyncIdService;

use crate::problem::Problem;
use crate::state::Call;

/// The result of a handler.
type Answer = Result<HttpResponse, Problem>;

/// A new ID. Parameters are checked first, because a refused request takes no ID.
async fn new_id(call: &Call) -> Result<u64, Problem> {
    let running = call.running();
    let id = running
        .within(None, AsyncIdService::gen_id(&*running.service))
        .await?;
    running.metrics.issue(call.caller, 1);
    Ok(id)
}

/// New IDs, ascending.
async fn new_ids(call: &Call, count: u32) -> Result<Vec<u64>, Problem> {
    let running = call.running();
    let ids = running
        .within(None, AsyncIdService::gen_ids(&*running.service, count))
        .await?;
    running.metrics.issue(call.caller, u64::from(count));
    Ok(ids)
}

/// A name in the path. The router leaves three characters percent-encoded, because decoding them
/// would change where the path is split or how it decodes a second time.
fn in_path(call: &Call, name: &str) -> String {
    let text = call
        .req
        .match_info()
        .query(name)
        .replace("%2F", "/")
        .replace("%2f", "/");
    text.replace("%2B", "+")
        .replace("%2b", "+")
        .replace("%25", "%")
}

fn decimal(id: u64) -> IdText {
    IdText::Decimal(id)
}

/// A text, followed by the `once` of its request, if that has one.
fn with_once(text: String, once: Option<String>) -> String {
    match once {
        None => text,
        Some(once) => [text, once].join(" "),
    }
}

/// The text of an ID.
fn characters(id: IdText) -> Bytes {
    id.with(|text| Bytes::copy_from_slice(text.as_bytes()))
}
