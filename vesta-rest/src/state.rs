//! The call passed to a handler, and the state that all handlers share.

use std::cell::OnceCell;

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{self, Bytes};
use serde::de::DeserializeOwned;
use vesta_boot::{Caller, Denied, Running, Scopes, TextFormat};
use vesta_explain::{Form, Reading, Written, read};
use vesta_intf::IdFormat;
use vesta_service::clock::{Clock as _, SystemClock};

use crate::params::{Params, missing};
use crate::problem::{Problem, quoted};
use crate::values::number;

/// The program that `app::configure` added to the application.
pub(crate) fn running(req: &HttpRequest) -> &Running {
    req.app_data::<web::Data<Running>>()
        .expect("configure() adds it to every application")
}

/// The error of an unknown path below the base path.
pub(crate) fn no_such_path(req: &HttpRequest) -> Problem {
    let base = &running(req).config.base_path;
    Problem::no_such_path(base, &[base, req.path()].concat())
}

/// Checks a request's token, if the server requires tokens.
pub(crate) fn authorize(
    running: &Running,
    headers: &HeaderMap,
    needs: Scopes,
) -> Result<Caller, Denied> {
    let token = headers
        .get_all(header::AUTHORIZATION)
        .map(HeaderValue::as_bytes);
    running.security.check(token, needs)
}

/// A header that is text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// An authorized request with checked parameter names and its body.
pub(crate) struct Call {
    pub(crate) req: HttpRequest,
    pub(crate) caller: Caller,
    pub(crate) params: Params,
    /// JSON, or empty.
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn running(&self) -> &Running {
        running(&self.req)
    }

    /// The body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Problem::bad_body(format!("the body does not match its schema: {error}"))
        })
    }

    /// The format of IDs in request and response.
    pub(crate) fn format(&self) -> Result<TextFormat<'_>, Problem> {
        self.named(self.params.format()?)
    }

    /// The format of IDs in the response to a request that names one of its own in `to`.
    pub(crate) fn to(&self) -> Result<TextFormat<'_>, Problem> {
        let to = self.params.format_of("to")?;
        self.named(to.unwrap_or(self.params.format()?))
    }

    fn named(&self, name: &str) -> Result<TextFormat<'_>, Problem> {
        let running = self.running();
        let key = running.security.opaque.as_ref();
        Ok(TextFormat::find(name, running.service.meta(), key)?)
    }

    /// The parameter `id`, in the format named by `format`.
    pub(crate) fn id(&self) -> Result<u64, Problem> {
        match (self.params.text("id"), self.params.format()?) {
            (Some(text), _) => self.id_of(text, &self.format()?),
            (None, "decimal") => Err(missing("id", 0, u64::MAX)),
            (None, name) => {
                let why = format!("id is missing; it must be an ID as {name}");
                Err(Problem::invalid("id", why))
            }
        }
    }

    /// The ID of a text. A decimal ID is a whole number like any other.
    pub(crate) fn id_of(&self, text: &str, format: &TextFormat<'_>) -> Result<u64, Problem> {
        match format {
            TextFormat::Plain(IdFormat::Decimal) => number("id", text, 0, u64::MAX)
                .map_err(|problem| self.fitting(text).unwrap_or(problem)),
            format => Ok(format.parse(text, SystemClock::new().wall())?),
        }
    }

    /// Problem of a text that is not decimal, the default, but fits other formats.
    fn fitting(&self, text: &str) -> Option<Problem> {
        let ids = read(text).and_then(Written::ids).ok()?;
        let is_guessed = self.params.text("format").is_none();
        let is_format = |it: &&Reading| it.around.is_empty() && matches!(it.form, Form::Format(_));
        let fits = ids.iter().filter(|it| is_guessed && is_format(it));
        let fits: Vec<_> = fits.map(Reading::to_string).collect();
        let all = fits.join(", ");
        let is = quoted(text);
        let why = format!(
            "id must be a whole number, but is {is}; it fits {all}: choose one with format="
        );
        (!fits.is_empty()).then(|| Problem::invalid("id", why))
    }
}

/// The OpenAPI document of the application, generated on first use: start-up is faster.
pub(crate) struct Document {
    made: OnceCell<Bytes>,
    make: fn(&Running) -> Bytes,
}

impl Document {
    pub(crate) const fn new(make: fn(&Running) -> Bytes) -> Self {
        Self {
            made: OnceCell::new(),
            make,
        }
    }

    pub(crate) fn get(&self, running: &Running) -> Bytes {
        self.made.get_or_init(|| (self.make)(running)).clone()
    }
}
