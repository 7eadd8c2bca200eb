//! The endpoint table: path, method, scope, handler and documentation of every endpoint. Routes,
//! parameter checks, metrics, `Allow` headers and the OpenAPI document are made from it.

use actix_web::HttpResponse;
use vesta_boot::Scopes;

use crate::dto::{
    Bounds, Explained, Fields, IdText, KnownLayouts, Layout, LeafDecoded, ManyIds, OneOrMany,
    OneOrManySerials, Parts, SegmentCache, SegmentRow, SerialParsed, TinyidNumbers, TinyidSegment,
    UidParsed,
};
use crate::endpoint::{Endpoint, Verb};
use crate::handlers::{leaf, pages, segments, serials, tinyid, uid, v1, vesta};
use crate::openapi::content::{html, json, list, number, object, one_id, text};
use crate::openapi::failures::{BAD_BATCH, CANNOT_MAKE, NO_SERIALS, NO_SUCH_TAG, NOT_OFFERED};
use crate::openapi::params::*;

/// The path as it is routed, if that differs: on the paths of other systems, slashes that repeat or trail
/// count as one or none, as in Spring MVC 5. Everywhere else a path is taken as it is.
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
        /// All endpoints. A request is matched in this order, so the busiest come first.
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

const BY_LAYOUT: &str = "By this server's layout, or the one that `layout` names. Of Vesta's two \
    layouts, the ID's own type bit chooses.";
const NOT_NEW: &str = "For tests and repairs: it is not a new ID. Nothing is masked, a field that \
    does not fit is refused.";

// method, path, scope, handler, parameters, body -> contents of a 200, groups of problems;
// summary, description
endpoints! {
    Any "/genid" GENERATE vesta::genid [FORMAT] -> [text("2407837855670862845")] or [CANNOT_MAKE]
        "A new ID as text, in decimal digits unless `format` names another format"
        "Never the same twice, so `Cache-Control: no-store`.";
    Get "/v1/id" GENERATE v1::id [FORMAT] -> [one_id()] or [CANNOT_MAKE]
        "A new ID" "Never the same twice, so `Cache-Control: no-store`.";
    Get "/v1/ids" GENERATE v1::ids [COUNT, FORMAT] -> [json::<ManyIds>()] or [CANNOT_MAKE]
        "Several new IDs, strictly ascending" "As many as requested, or none.";
    Any "/expid" READ vesta::expid [ID, FORMAT, LAYOUT] -> [json::<Fields>()]
        "The fields of an ID" BY_LAYOUT;
    Any "/transtime" READ vesta::transtime [TICKS, TZ] -> [text("2018-01-04T10:08:23.000+08:00")]
        "The moment at which a tick begins"
        "RFC 3339, to the millisecond: in UTC, or in the time zone `tz` with its offset.";
    Any "/makeid" READ vesta::makeid [TICKS, SEQ, MACHINE, GEN_METHOD, TYPE, VERSION, FORMAT]
        -> [text("2407837855670862845")] "An ID assembled from its fields" NOT_NEW;
    Get "/v1/ids/{id}" READ v1::explain [PATH_ID, FORMAT, LAYOUT] -> [json::<Explained>()]
        "The fields of an ID, and its time" BY_LAYOUT;
    Post "/v1/ids:make" READ v1::make [FORMAT] body [json::<Parts>()] -> [one_id()]
        "An ID assembled from its fields" NOT_NEW;
    Get "/v1/ids:bound" READ v1::bound [MOMENT, TYPE, GEN_METHOD, VERSION, FORMAT] -> [json::<Bounds>()]
        "The smallest and the largest ID of a moment"
        "For `WHERE id >= lower(a) AND id < lower(b)`: all IDs from the moment a up to, but excluding, \
         the moment b. Both are those of the whole tick (second or millisecond) to which the moment \
         belongs. Version, type and genMethod stand above the time: the bounds hold among the IDs that \
         agree in them.";
    Get "/v1/layout" READ v1::layout [] -> [json::<Layout>()]
        "The layout of this server's IDs, and the machine ID it holds" "";
    Get "/v1/layouts" READ v1::layouts [] -> [json::<KnownLayouts>()]
        "The layouts that IDs can be explained by"
        "Those that `layout` takes. The server's own is marked; if it has no name, it is there as `custom`.";
    Any "/api/snowflake/get/{key}" GENERATE leaf::snowflake [SNOWFLAKE_KEY]
        -> [text("1234567890123456789"), number("1234567890123456789")] or [CANNOT_MAKE]
        "A new ID, as in Leaf's snowflake mode"
        "The key is ignored, as in Leaf. The ID has this server's layout; with `snowflake` it is Leaf's own. \
         It is `application/json` if `Accept` prefers that, else text.";
    Any "/api/segment/get/{key}" SEGMENTS leaf::segment [SEGMENT_KEY]
        -> [text("1001"), number("1001")] or [CANNOT_MAKE, NO_SUCH_TAG, NOT_OFFERED]
        "The next number of a tag, as in Leaf's segment mode"
        "It is `application/json` if `Accept` prefers that, else text.";
    Get "/v1/segments/{key}/next" SEGMENTS segments::next [SEGMENT_KEY, OPTIONAL_COUNT]
        -> [json::<OneOrMany>()] or [CANNOT_MAKE, NO_SUCH_TAG, NOT_OFFERED]
        "The next number of a tag, or with `count` a list, ascending"
        "Increasing, with few gaps. The numbers of one server and tag strictly increase; those of several \
         servers never overlap.";
    Get "/v1/serials/{tag}/next" SERIALS serials::next [SERIAL_TAG, SERIAL_COUNT]
        -> [json::<OneOrManySerials>()] or [NO_SERIALS]
        "A new serial of a tag, or with `count` a list, in the order of their counters"
        "Never the same twice, so `Cache-Control: no-store`. A counter that has outgrown its digits is \
         `UNAVAILABLE`, until the next period.";
    Get "/v1/serials/{tag}/parse" SERIALS serials::parse [SERIAL_TAG, SERIAL]
        -> [json::<SerialParsed>()] or [NO_SERIALS]
        "What a serial says, and whether it is one at all"
        "One with a wrong character or check symbol is `INVALID`. What does not apply to the tag's pattern \
         is absent.";
    Any "/cache" SEGMENTS leaf::cache [] -> [list::<SegmentCache>(), html()] or [NOT_OFFERED]
        "In-memory ranges of each tag" "An HTML page; JSON if `Accept` prefers that.";
    Any "/db" SEGMENTS leaf::db [] -> [list::<SegmentRow>(), html()] or [CANNOT_MAKE, NOT_OFFERED]
        "Rows of the segment table, read now" "An HTML page; JSON if `Accept` prefers that.";
    Any "/decodeSnowflakeId" READ leaf::decode [SNOWFLAKE_ID] -> [json::<LeafDecoded>()]
        "The fields of an ID, as Leaf's monitor shows them"
        "By this server's own layout. Every member is a string. The moment is in milliseconds since \
         1970 and, in brackets, readable in the server's time zone.";
    Any "/uid/get" GENERATE uid::get [] -> [text("3516414031872")] or [CANNOT_MAKE, NOT_OFFERED]
        "A new UID in decimal digits"
        "Only from a server whose layout has uid-generator's shape: time-machine-seq in seconds, without type and \
         genMethod, in any widths.";
    Any "/uid/parse" READ uid::parse [UID] -> [json::<UidParsed>()] or [NOT_OFFERED]
        "The fields of a UID, as uid-generator's `parseUID` returns them"
        "By this server's own layout, as `/uid/get`. Every member is a string. The moment is in the server's \
         time zone.";
    Every "/tinyid/id/nextId" NONE tinyid::next_id [BIZ_TYPE, TOKEN, BATCH_SIZE]
        -> [json::<TinyidNumbers>()] or [BAD_BATCH]
        "The next numbers of a tag, as from Tinyid"
        "Always status 200: `code` 5 is a wrong token, 6 any other error. More than \
         100,000 at a time are as if 100,000 were asked for, as in Tinyid.";
    Every "/tinyid/id/nextIdSimple" NONE tinyid::next_id_simple [BIZ_TYPE, TOKEN, BATCH_SIZE]
        -> [text("4,5,6")] or [BAD_BATCH]
        "The next numbers of a tag, with commas between them" "As `nextId`; an error is an empty body.";
    Every "/tinyid/id/nextSegmentId" NONE tinyid::next_segment_id [BIZ_TYPE, TOKEN]
        -> [json::<TinyidSegment>()]
        "A range of a tag for a client that gives out its numbers itself"
        "Those above `currentId`, up to and with `maxId`, whose remainder by `delta` is `remainder`. Always one \
         step of the table.";
    Every "/tinyid/id/nextSegmentIdSimple" NONE tinyid::next_segment_id_simple [BIZ_TYPE, TOKEN]
        -> [text("1,20001,100001,1,0")]
        "The same as currentId,loadingId,maxId,delta,remainder" "An error is an empty body.";
    Get "/openapi.json" NONE pages::openapi [] -> [object()] "This document" "OpenAPI 3.";
    Get "/vesta.proto" NONE pages::proto [] -> [text("syntax = \"proto3\";")]
        "The protocol of gRPC" "Protocol Buffers, package `vesta.v1`. It is the same in every server of this version.";
    Get "/" NONE pages::index [] -> [] "" "";
    Get "/docs" NONE pages::docs_moved [] -> [] "" "";
    Get "/docs/{file:.*}" NONE pages::docs [] -> [] "" "";
}

/// An endpoint that answers with one new ID: its index in [`METHODS`], and its response.
type OneNewId = (usize, fn(IdText) -> HttpResponse);

/// The endpoints that do.
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
    fn superfluous_slashes_are_dropped_on_the_paths_of_other_systems_only() {
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
