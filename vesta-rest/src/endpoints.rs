//! The endpoint table: path, method, scope, handler and documentation of every endpoint. Routes,
//! parameter checks, metrics, `Allow` headers and the OpenAPI document are made from it.

use actix_web::HttpResponse;
use vesta_boot::Scopes;
use vesta_boot::answers::{
    Bounds, Explained, Fields, IdText, KnownLayouts, Layout, ManyIds, OneOrMany, Parts, Runs,
};
use vesta_boot::serials::{NewSerial, OneOrManySerials, SerialCreated, SerialParsed};

use crate::described::content::{html, json, list, number, object, one_id, text};
use crate::described::failures::{
    ANOTHER_TAG, BAD_BATCH, CANNOT_MAKE, NO_SERIALS, NO_SUCH_TAG, NOT_OFFERED,
};
use crate::described::params::*;
use crate::dto::{LeafDecoded, SegmentCache, SegmentRow, TinyidNumbers, TinyidSegment, UidParsed};
use crate::endpoint::{Endpoint, Verb};
use crate::handlers::{leaf, pages, segments, serials, tinyid, uid, v1, vesta};

/// The path to route, if it differs from the request's. On the paths of other systems, repeated slashes count as one
/// and trailing ones as none, as in Spring MVC 5. Other paths are taken as they are.
pub(crate) fn as_routed(path: &str) -> Option<String> {
    if !path.contains("//") && !path.ends_with('/') {
        return None;
    }
    let parts = path.split('/').filter(|part| !part.is_empty());
    let plain: String = parts.flat_map(|part| ["/", part]).collect();
    let is_it = |endpoint: &Endpoint| {
        let fixed = endpoint.path.split('{').next().unwrap_or_default();
        matches!(endpoint.verb, Verb::Any | Verb::Every) && plain.starts_with(fixed)
    };
    ENDPOINTS.iter().any(is_it).then_some(plain)
}

macro_rules! endpoints {
    ($($verb:ident $path:literal $needs:ident $module:ident::$handler:ident $params:tt
        $(body [$body:expr])? -> $returns:tt $(or [$($failures:expr),*])? $summary:literal $description:expr;)*) => {
        /// All endpoints, in matching order: the busiest come first.
        pub const ENDPOINTS: [Endpoint; [$($path),*].len()] = [$(Endpoint {
            path: $path,
            verb: Verb::$verb,
            needs: Scopes::$needs,
            handler: |call| Box::pin($module::$handler(call)),
            params: &$params,
            tag: stringify!($module),
            name: concat!(stringify!($module), "_", stringify!($handler)),
            summary: $summary,
            description: $description,
            body: &[$($body)?],
            returns: &$returns,
            failures: &[$($($failures),*)?],
        }),*];
    };
}

const BY_LAYOUT: &str = "By this server's layout, or by the one named in `layout`. Between Vesta's \
    two layouts, the ID's type bit decides.";
const NOT_NEW: &str = "For tests and repairs: the result is not a new ID. A field that does not \
    fit is refused, never masked.";

// method, path, scope, handler, parameters, body -> contents of a 200, groups of problems;
// summary, description
endpoints! {
    Any "/genid" GENERATE vesta::genid [FORMAT, ONCE] -> [text("2407837855670862845")] or [CANNOT_MAKE]
        "A new ID as text, in decimal digits unless `format` names another format"
        "Never the same ID twice; sent with `Cache-Control: no-store`.";
    Get "/v1/id" GENERATE v1::id [FORMAT, ONCE] -> [one_id()] or [CANNOT_MAKE]
        "A new ID" "Never the same ID twice; sent with `Cache-Control: no-store`.";
    Get "/v1/ids" GENERATE v1::ids [COUNT, FORMAT, ONCE] -> [json::<ManyIds>()] or [CANNOT_MAKE]
        "Several new IDs, strictly ascending" "All or nothing: as many as requested, or an error.";
    Get "/v1/runs" GENERATE v1::runs [RUN_COUNT, ONCE] -> [json::<Runs>()] or [CANNOT_MAKE]
        "Many new IDs as runs, in a few dozen bytes"
        "A run is the IDs `first`, `first + step`, and so on, `count` of them. The counts add up to the count \
         requested: all or nothing. Sent with `Cache-Control: no-store`.";
    Any "/expid" READ vesta::expid [ID, FORMAT, LAYOUT] -> [json::<Fields>()]
        "The fields of an ID" BY_LAYOUT;
    Any "/transtime" READ vesta::transtime [TICKS, TZ, ONCE] -> [text("2018-01-04T10:08:23.000+08:00")]
        "The start time of a tick"
        "RFC 3339, to the millisecond: in UTC, or in the time zone `tz` with its offset.";
    Any "/makeid" READ vesta::makeid [TICKS, SEQ, MACHINE, GEN_METHOD, TYPE, VERSION, FORMAT, ONCE]
        -> [text("2407837855670862845")] "An ID assembled from its fields" NOT_NEW;
    Get "/v1/ids/{id}" READ v1::explain [PATH_ID, FORMAT, TO, LAYOUT] -> [json::<Explained>()]
        "The fields of an ID, and its time" BY_LAYOUT;
    Post "/v1/ids:make" READ v1::make [FORMAT, ONCE] body [json::<Parts>()] -> [one_id()]
        "An ID assembled from its fields" NOT_NEW;
    Get "/v1/ids:bound" READ v1::bound [MOMENT, TYPE, GEN_METHOD, VERSION, FORMAT] -> [json::<Bounds>()]
        "The smallest and the largest ID of a moment"
        "For range queries: `WHERE id >= lower(a) AND id < lower(b)` selects all IDs from the moment a up \
         to, but excluding, the moment b. Both bounds are those of the whole tick (second or \
         millisecond) that contains the moment. Version, type and genMethod are more significant than \
         the time: the bounds hold among IDs with the same values of these fields.";
    Get "/v1/layout" READ v1::layout [] -> [json::<Layout>()]
        "The layout of this server's IDs, and the machine ID it holds" "";
    Get "/v1/layouts" READ v1::layouts [] -> [json::<KnownLayouts>()]
        "The known layouts for explaining IDs"
        "The values of `layout`. The server's own layout is marked; if it has no name, it is listed as `custom`.";
    Any "/api/snowflake/get/{key}" GENERATE leaf::snowflake [SNOWFLAKE_KEY, ONCE]
        -> [text("1234567890123456789"), number("1234567890123456789")] or [CANNOT_MAKE]
        "A new ID, as in Leaf's snowflake mode"
        "The key is ignored, as in Leaf. The ID has this server's layout; the layout `snowflake` is Leaf's \
         own. The response is `application/json` if `Accept` prefers that, else text.";
    Any "/api/segment/get/{tag}" SEGMENTS leaf::segment [SEGMENT_TAG, ONCE]
        -> [text("1001"), number("1001")] or [CANNOT_MAKE, NO_SUCH_TAG, NOT_OFFERED]
        "The next number of a tag, as in Leaf's segment mode"
        "The response is `application/json` if `Accept` prefers that, else text.";
    Get "/v1/segments/{tag}/next" SEGMENTS segments::next [SEGMENT_TAG, OPTIONAL_COUNT, ONCE]
        -> [json::<OneOrMany>()] or [CANNOT_MAKE, NO_SUCH_TAG, NOT_OFFERED]
        "The next number of a tag; with `count`, an ascending list"
        "Increasing, with few gaps. On one server the numbers of a tag strictly increase; those of several \
         servers never overlap.";
    Get "/v1/serials/{tag}/next" SERIALS serials::next [SERIAL_TAG, SERIAL_COUNT, ONCE]
        -> [json::<OneOrManySerials>()] or [NO_SERIALS]
        "A new serial of a tag; with `count`, a list ordered by counter"
        "Never the same serial twice; sent with `Cache-Control: no-store`. Once a counter has outgrown its \
         digits, the error is `UNAVAILABLE` until the next period.";
    Get "/v1/serials/{tag}/parse" SERIALS serials::parse [SERIAL_TAG, SERIAL]
        -> [json::<SerialParsed>()] or [NO_SERIALS]
        "The decoded parts of a serial, if it is valid"
        "A serial with a wrong character or check symbol is `INVALID`. Members that do not apply to the \
         tag's pattern are absent.";
    Post "/v1/serials" ADMIN serials::create [] body [json::<NewSerial>()]
        -> [json::<SerialCreated>()] or [NO_SERIALS, ANOTHER_TAG]
        "Creates a serial tag, unless it exists"
        "Only on a server whose callers have tokens. `created` is false if the tag existed with this definition, \
         so a repeated request does no harm; one with another definition stays as it was. A pattern that shuffles is refused, because \
         every server needs its key.";
    Any "/cache" SEGMENTS leaf::cache [] -> [list::<SegmentCache>(), html()] or [NOT_OFFERED]
        "In-memory ranges of each tag" "An HTML page; JSON if `Accept` prefers that.";
    Any "/db" SEGMENTS leaf::db [] -> [list::<SegmentRow>(), html()] or [CANNOT_MAKE, NOT_OFFERED]
        "Rows of the segment table, read now" "An HTML page; JSON if `Accept` prefers that.";
    Any "/decodeSnowflakeId" READ leaf::decode [SNOWFLAKE_ID] -> [json::<LeafDecoded>()]
        "The fields of an ID, as Leaf's monitor shows them"
        "By this server's own layout. Every member is a string. The time is in milliseconds since 1970, \
         followed in brackets by the local time in the server's time zone.";
    Any "/uid/get" GENERATE uid::get [ONCE] -> [text("3516414031872")] or [CANNOT_MAKE, NOT_OFFERED]
        "A new UID in decimal digits"
        "Only on a server whose layout has uid-generator's shape: time-machine-seq in seconds, of any widths, \
         without type and genMethod.";
    Any "/uid/parse" READ uid::parse [UID] -> [json::<UidParsed>()] or [NOT_OFFERED]
        "The fields of a UID, as uid-generator's `parseUID` returns them"
        "By this server's own layout, as for `/uid/get`. Every member is a string. The time is in the \
         server's time zone.";
    Every "/tinyid/id/nextId" NONE tinyid::next_id [BIZ_TYPE, TOKEN, BATCH_SIZE, ONCE]
        -> [json::<TinyidNumbers>()] or [BAD_BATCH]
        "The next numbers of a tag, as from Tinyid"
        "Always status 200: `code` 5 is a wrong token, 6 any other error. A `batchSize` \
         above 100,000 counts as 100,000, as in Tinyid.";
    Every "/tinyid/id/nextIdSimple" NONE tinyid::next_id_simple [BIZ_TYPE, TOKEN, BATCH_SIZE, ONCE]
        -> [text("4,5,6")] or [BAD_BATCH]
        "The next numbers of a tag, separated by commas" "As `nextId`; an error is an empty body.";
    Every "/tinyid/id/nextSegmentId" NONE tinyid::next_segment_id [BIZ_TYPE, TOKEN, ONCE]
        -> [json::<TinyidSegment>()]
        "A range of a tag, for a client that issues the numbers itself"
        "The numbers n with `currentId` < n ≤ `maxId` and n mod `delta` = `remainder`. Always one step of the \
         table.";
    Every "/tinyid/id/nextSegmentIdSimple" NONE tinyid::next_segment_id_simple [BIZ_TYPE, TOKEN, ONCE]
        -> [text("1,20001,100001,1,0")]
        "A range of a tag as currentId,loadingId,maxId,delta,remainder" "An error is an empty body.";
    Get "/openapi.json" NONE pages::openapi [] -> [object()] "This document" "OpenAPI 3.";
    Get "/vesta.proto" NONE pages::proto [] -> [text("syntax = \"proto3\";")]
        "The gRPC protocol" "Protocol Buffers, package `vesta.v1`. Identical in every server of this version.";
    Get "/" NONE pages::index [] -> [] "" "";
    Get "/docs" NONE pages::docs_moved [] -> [] "" "";
    Get "/docs/{file:.*}" NONE pages::docs [] -> [] "" "";
}

/// An endpoint that returns one new ID: its index in [`METHODS`] and its response.
type OneNewId = (usize, fn(IdText) -> HttpResponse);

/// The endpoints that return one new ID.
pub(crate) const ONE_ID: [OneNewId; 2] = [(0, vesta::new_id_text), (1, v1::new_id_json)];

/// Index in [`METHODS`] of requests to unknown paths or methods.
pub(crate) const OTHER: usize = ENDPOINTS.len();

/// Metric labels of requests: the paths of [`ENDPOINTS`], and `other`.
pub const METHODS: &[&str] = &{
    let mut names = ["other"; OTHER + 1];
    let mut i = 0;
    while i < OTHER {
        names[i] = ENDPOINTS[i].path;
        i += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superfluous_slashes_are_dropped_only_on_legacy_paths() {
        for (path, plain) in [
            ("/api/segment/get/order/", "/api/segment/get/order"),
            ("//api//segment/get///order//", "/api/segment/get/order"),
            (
                "/api/snowflake/get/a%2F%2Fb/",
                "/api/snowflake/get/a%2F%2Fb",
            ),
            ("/uid/get/", "/uid/get"),
            ("/uid//parse", "/uid/parse"),
            ("/tinyid/id/nextId/", "/tinyid/id/nextId"),
            ("//genid", "/genid"),
            ("/cache/", "/cache"),
        ] {
            assert_eq!(as_routed(path).as_deref(), Some(plain));
            assert_eq!(as_routed(plain), None, "{plain}");
        }
        for path in [
            "/",
            "//",
            "/v1/id/",
            "//v1/ids/1",
            "/docs/",
            "/docs//index.html",
        ] {
            assert_eq!(as_routed(path), None);
        }
        assert_eq!(as_routed("/api/segment/get/"), None, "there is no key");
    }

    #[test]
    fn the_fast_path_serves_single_ids() {
        assert_eq!(
            ONE_ID.map(|(method, _)| METHODS[method]),
            ["/genid", "/v1/id"]
        );
    }
}
