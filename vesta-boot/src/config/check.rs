//! The rules for single settings, and those between settings.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use vesta_intf::{Field, GenMethod, IdMeta, LayoutSpec, SequenceStart, UnixMillis};
use vesta_service::PopulatorKind;

use super::{Config, Log, LogFormat, auth, listeners, machine, segment, store, tls};
use crate::raw::{CustomLayout, Epoch, KEYS, Origin, Raw};
use crate::{ConfigError, secret};

type Checked<T> = Result<T, ConfigError>;

pub(super) fn check(raw: &Raw) -> Checked<Config> {
    let layout = layout(raw)?;
    let machine = machine::check(raw, &layout)?;
    let admin_listen = match raw.text("admin.listen") {
        "off" => None,
        _ => Some(raw.address("admin.listen")?),
    };
    let config = Config {
        role: raw.role,
        listen: raw.address("listen")?,
        admin_listen,
        populator: raw.choice("populator", &POPULATORS)?,
        gen_method: gen_method(raw, &layout)?,
        version: raw.number("version", 0, layout.max(Field::Version))?,
        sequence_start: sequence_start(raw, &layout)?,
        lease: store::lease(raw, &machine)?,
        store_timeout: match raw.get("machine.request_timeout_ms") {
            Some(_) => Some(raw.millis("machine.request_timeout_ms", 1)?),
            None => None,
        },
        auto_init: raw.truth("auto_init")?,
        wait_for_store: raw.truth("wait_for_store")?,
        machine,
        segments: segment::check(raw)?,
        namespace: namespace(raw)?,
        state_dir: state_dir(raw)?,
        max_wait: raw.millis("max_wait_ms", 0)?,
        request_timeout: raw.millis("request_timeout_ms", 1)?,
        drain_limit: raw.millis("drain_limit_ms", 0)?,
        max_connections: raw.size("max_connections", 1_000_000)?,
        workers: match raw.get("workers") {
            Some(_) => raw.size("workers", 512)?,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        },
        allow_plaintext: raw.truth("allow_plaintext")?,
        tls: tls::public(raw)?,
        admin_tls: tls::admin(raw, admin_listen.is_some())?,
        auth: auth::check(raw)?,
        log: log(raw)?,
        layout,
    };
    listeners::check(&config, raw)?;
    Ok(config)
}

const POPULATORS: [(&str, PopulatorKind); 3] = [
    ("lock", PopulatorKind::Lock),
    ("sync", PopulatorKind::Sync),
    ("atomic", PopulatorKind::Atomic),
];

/// No wait may be longer than this, in milliseconds: ten minutes.
const LONGEST_WAIT: u64 = 600_000;

/// Readers of single settings. Each error names the setting, what would be right, what came and from
/// where.
impl Raw {
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", |given| given.value.as_str())
    }

    pub(super) fn refuse(&self, name: &str, must: impl Display) -> ConfigError {
        let key = KEYS.iter().find(|key| key.name == name).expect("only settings are refused");
        let text = self.text(name);
        let is_url = name.ends_with(".store") || secret::may_be_url(text);
        let value = if is_url { vesta_store::redact(text) } else { text.to_owned() };
        ConfigError::refused(format!("{name} {must}, but is `{value}` ({})", self.origin_of(key)))
    }

    pub(super) fn number(&self, name: &str, min: u64, max: u64) -> Checked<u64> {
        let fits = |number: &u64| (min..=max).contains(number);
        self.text(name).trim().parse().ok().filter(fits).ok_or_else(|| {
            let must = if min == max { format!("{min}") } else { format!("{min} to {max}") };
            self.refuse(name, format_args!("must be {must}"))
        })
    }

    pub(super) fn millis(&self, name: &str, min: u64) -> Checked<Duration> {
        Ok(Duration::from_millis(self.number(name, min, LONGEST_WAIT)?))
    }

    fn size(&self, name: &str, max: u32) -> Checked<usize> {
        let number = self.number(name, 1, u64::from(max))?;
        Ok(usize::try_from(number).expect("a 32-bit number fits"))
    }

    pub(super) fn truth(&self, name: &str) -> Checked<bool> {
        self.choice(name, &[("true", true), ("false", false)])
    }

    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Checked<T> {
        let found = choices.iter().find(|choice| choice.0 == self.text(name));
        found.map(|choice| choice.1).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|choice| choice.0).collect();
            self.refuse(name, format_args!("must be {}", either(&names)))
        })
    }

    fn address(&self, name: &str) -> Checked<SocketAddr> {
        let text = self.text(name).trim();
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        numeric.parse().map_err(|_| {
            self.refuse(name, "must be an IP address and a port, such as 127.0.0.1:50051")
        })
    }
}

/// `a, b or c`.
fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn layout(raw: &Raw) -> Checked<IdMeta> {
    let name = raw.text("layout");
    if name != "custom" {
        let makes_ids = |meta: &IdMeta| meta.check_generates().is_ok();
        let refuse = || {
            let able = IdMeta::all_known().filter(makes_ids);
            let names: Vec<_> = able.map(|meta| meta.name()).chain(["custom"]).collect();
            raw.refuse("layout", format_args!("must be {}", either(&names)))
        };
        return match IdMeta::known(name) {
            Ok(meta) if makes_ids(&meta) => Ok(meta),
            Ok(_) => {
                Err(ConfigError::refused(format!("{}, which is for explaining IDs only", refuse())))
            }
            Err(_) => Err(refuse()),
        };
    }
    let Some(custom) = &raw.custom else {
        return Err(raw.refuse(
            "layout",
            "must be the name of a preset, or be described by [layout.custom] in the file that \
             --config names",
        ));
    };
    IdMeta::new(spec(custom)?)
        .map_err(|error| ConfigError::refused(format!("[layout.custom] does not add up: {error}")))
}

fn spec(custom: &CustomLayout) -> Checked<LayoutSpec> {
    let epoch = match &custom.epoch {
        Epoch::Millis(millis) => *millis,
        Epoch::Text(text) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|moment| u64::try_from(moment.as_millisecond()).ok())
            .ok_or_else(|| {
                ConfigError::refused(format!(
                    "epoch in [layout.custom] must be milliseconds since 1970 or a moment such as \
                     2026-01-01T00:00:00Z, but is `{}`",
                    text
                ))
            })?,
    };
    Ok(LayoutSpec {
        version_bits: custom.version_bits,
        type_bits: custom.type_bits,
        gen_method_bits: custom.gen_method_bits,
        time_bits: custom.time_bits,
        seq_bits: custom.seq_bits,
        machine_bits: custom.machine_bits,
        order: custom.order,
        unit: custom.unit,
        epoch: UnixMillis(epoch),
    })
}

fn gen_method(raw: &Raw, layout: &IdMeta) -> Checked<GenMethod> {
    // A layout without these bits has nothing to say about them; only a wish of somebody's own is
    // refused.
    let max = layout.max(Field::GenMethod).min(GenMethod::Reserved.value());
    if max == 0 && !raw.is_explicit("gen_method") {
        return Ok(GenMethod::Embed);
    }
    let value = raw.number("gen_method", 0, max)?;
    Ok(GenMethod::from_value(value).expect("at most the largest value there is"))
}

fn sequence_start(raw: &Raw, layout: &IdMeta) -> Checked<SequenceStart> {
    let start = raw.text("sequence_start").parse().ok();
    start.filter(|start: &SequenceStart| start.check(layout).is_ok()).ok_or_else(|| {
        let most = layout.max(Field::Seq).saturating_add(1).min(u32::MAX.into());
        let must = format!("must be zero or random:N with N from 1 to {most} in this layout");
        raw.refuse("sequence_start", must)
    })
}

fn namespace(raw: &Raw) -> Checked<String> {
    let name = raw.text("namespace");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        return Err(raw.refuse("namespace", "must be 1 to 64 letters, digits, `.`, `_` or `-`"));
    }
    Ok(name.to_owned())
}

fn state_dir(raw: &Raw) -> Checked<PathBuf> {
    match raw.text("state_dir") {
        // A URL belongs elsewhere, and its password would show wherever the folder does.
        path if path.is_empty() || path.contains("://") => {
            Err(raw.refuse("state_dir", "must be the path of a folder"))
        }
        path => Ok(PathBuf::from(path)),
    }
}

fn log(raw: &Raw) -> Checked<Log> {
    let format =
        raw.choice("log.format", &[("human", LogFormat::Human), ("json", LogFormat::Json)])?;
    let level = raw.text("log.level");
    // EnvFilter takes any word for a module's name; a bare word is meant as a level.
    let levels = ["error", "warn", "info", "debug", "trace", "off"];
    let is_level = |part: &str| part.contains('=') || levels.contains(&part);
    let wrong = !level.split(',').all(is_level) || secret::may_be_url(level);
    if wrong || EnvFilter::try_new(level).is_err() {
        let must = format!("must be {}, also by module as in info,h2=debug", either(&levels));
        return Err(raw.refuse("log.level", must));
    }
    Ok(Log { format, level: level.to_owned() })
}

/// Whether a setting has a value that somebody chose and that is not the given one.
pub(super) fn chosen<'a>(raw: &'a Raw, name: &str) -> Option<&'a str> {
    raw.get(name).filter(|given| given.origin != Origin::Default).map(|given| given.value.as_str())
}
