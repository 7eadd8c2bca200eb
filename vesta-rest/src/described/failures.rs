//! Problems that endpoints respond with, each with an example.

use std::collections::BTreeMap;
use std::time::Duration;

use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, Response, ResponseBuilder, Type,
};
use vesta_boot::output::value;
use vesta_boot::{Denied, SEGMENTS_OFF, SERIALS_OFF, Scopes, answers};
use vesta_intf::{IdError, NotReady, NotReadyReason};

use crate::problem::Problem;
use crate::values::MAX_BODY;

/// A group of problems.
pub(crate) type Failures = fn() -> Vec<Problem>;

/// Reasons why no ID can be made.
pub(crate) const CANNOT_MAKE: Failures = || {
    let not_ready = |millis, why| {
        NotReady {
            retry_after: Duration::from_millis(millis),
            why,
        }
        .into()
    };
    let errors: [IdError; 8] = [
        not_ready(480, NotReadyReason::SequenceUsedUp),
        not_ready(1500, NotReadyReason::AwaitingLease),
        not_ready(6000, NotReadyReason::ClockBehind),
        not_ready(100, NotReadyReason::NotHolder),
        IdError::Sealed {
            reason: "the server is shutting down".into(),
        },
        IdError::DeadlineExceeded,
        IdError::TimeExhausted,
        IdError::Internal {
            reason: "the state file could not be written".into(),
            source: None,
        },
    ];
    errors.map(Problem::from).into()
};

/// The tag exists with another definition.
pub(crate) const ANOTHER_TAG: Failures = || {
    vec![
        IdError::AlreadyExists {
            what: "tag `bills`".into(),
        }
        .into(),
    ]
};

/// The server has no such tag.
pub(crate) const NO_SUCH_TAG: Failures = || {
    vec![
        IdError::NotFound {
            what: "segment tag `orders`".into(),
        }
        .into(),
    ]
};

/// The server does not offer this: it has another layout, or segment mode is off.
pub(crate) const NOT_OFFERED: Failures = || {
    vec![
        IdError::Unsupported {
            what: SEGMENTS_OFF.into(),
        }
        .into(),
    ]
};

/// A batch size that is not a number.
pub(crate) const BAD_BATCH: Failures = || {
    vec![Problem::invalid(
        "batchSize",
        "batchSize must be a whole number, but is `ten`",
    )]
};

/// Reasons why a tag has no serials here.
pub(crate) const NO_SERIALS: Failures = || {
    let key = "serial tag `coupons` needs the key with fingerprint 9c2e41f07ab35d68, but no key \
               was given";
    let reason = "tag `invoices` has no more serials until the next day: its counter reached 999999, \
                  the maximum of INV-{date:yyMMdd}-{n:6}";
    let retry_after = Duration::from_millis(500);
    let errors: [IdError; 8] = [
        IdError::NotFound {
            what: "serial tag `invoyces`".into(),
        },
        NotReady {
            retry_after,
            why: NotReadyReason::AwaitingLease,
        }
        .into(),
        IdError::Unavailable {
            reason: reason.into(),
            retry_after: None,
            source: None,
        },
        IdError::Sealed {
            reason: "the server is shutting down".into(),
        },
        IdError::DeadlineExceeded,
        IdError::Unsupported {
            what: SERIALS_OFF.into(),
        },
        IdError::Unsupported { what: key.into() },
        IdError::Internal {
            reason: "serial tag `invoices` has a counter only".into(),
            source: None,
        },
    ];
    errors.map(Problem::from).into()
};

/// Problems with the parameters of any endpoint.
const BAD_INPUT: Failures = || {
    vec![
        IdError::OutOfRange {
            field: "machine",
            value: 1024,
            min: 0,
            max: 1023,
        }
        .into(),
        Problem::invalid(
            "tim",
            "unknown parameter `tim`; this endpoint takes time, tz",
        ),
    ]
};

/// Problems with a JSON body.
const BAD_JSON: Failures = || {
    let problems = [
        answers::Problem::body_too_slow(Duration::from_secs(2)),
        answers::Problem::body_too_large(MAX_BODY),
        answers::Problem::not_json(),
    ];
    problems.map(Problem::from).into()
};

/// All problems of an endpoint: its own, and those of a JSON body, of parameters, and of a token without the required
/// scope.
pub(crate) fn problems(
    own: &[Failures],
    takes_json: bool,
    takes_params: bool,
    needs: Scopes,
) -> Vec<Problem> {
    let mut problems: Vec<_> = own.iter().flat_map(|failures| failures()).collect();
    if takes_json {
        problems.extend(BAD_JSON());
    }
    if takes_params {
        problems.extend(BAD_INPUT());
    }
    if needs != Scopes::NONE {
        let lacks = Denied::Lacks {
            token: "ci".into(),
            needs,
        };
        problems.extend([Denied::NoToken, lacks].map(Problem::from));
    }
    problems
}

/// One response for each status of these problems.
pub(crate) fn responses(problems: Vec<Problem>) -> impl Iterator<Item = (String, Response)> {
    let mut by_status: BTreeMap<u16, Vec<Problem>> = BTreeMap::new();
    for problem in problems {
        by_status
            .entry(problem.body().status)
            .or_default()
            .push(problem);
    }
    by_status
        .into_iter()
        .map(|(status, problems)| (status.to_string(), response(&problems)))
}

fn response(problems: &[Problem]) -> Response {
    let bodies = problems.iter().map(Problem::body);
    let description: Vec<_> = bodies
        .clone()
        .map(|b| format!("`{}`: {}", b.kind, b.title))
        .collect();
    let examples = bodies.map(|b| (b.kind, ExampleBuilder::new().value(Some(value(b))).build()));
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build();
    let response = ResponseBuilder::new()
        .description(description.join("; "))
        .content(answers::Problem::MEDIA, content);
    if problems
        .iter()
        .all(|problem| problem.body().retry_after_ms.is_none())
    {
        return response.build();
    }
    let header = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
        .description(Some("Seconds to wait before a retry, rounded up."))
        .build();
    response.header("Retry-After", header).build()
}
