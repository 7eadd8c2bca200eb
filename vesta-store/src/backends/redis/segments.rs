//! Segment tags in a Redis.

#[cfg(test)]
mod fuzz;

use std::str::FromStr;

use vesta_service::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, StoreError, UnixMillis};

use super::{Cmd, Config, Server, errors};
use crate::{OpenError, Options, StoreUrl};

/// A script from files, the first of which go before all.
macro_rules! script {
    ($file:literal) => {
        concat!(
            include_str!("segments/flaw.lua"),
            include_str!("segments/common.lua"),
            include_str!($file)
        )
    };
}

const TAGS: &str = script!("segments/tags.lua");
const TAKE: &str = script!("segments/take.lua");
const CREATE: &str = script!("segments/create.lua");

/// The number of values of a tag, with its name.
const VALUES: usize = 5;

/// Segment tags in a Redis (5 or newer), or in what speaks its protocol and runs its scripts.
///
/// # URL
/// As for [`RedisKv`](super::kv::RedisKv), whose keys may lie beside these.
///
/// # Keys
/// With another prefix, that one in place of `vesta`:
/// ```text
/// vesta:segments:meta        hash  schema       1
/// vesta:segments:tags        set   the name of each tag
/// vesta:segments:tag:orders  hash  max_id       decimal: the first number that was never handed out
///                                  step         decimal: how many to fetch at a time, at least
///                                  description  for people; may be missing
///                                  update_time  for people: milliseconds since 1970; may be missing
/// ```
/// Numbers have 63 bits, a `-` at most and no leading zeros. Each request is one script, so it is one
/// atomic step, and Redis itself adds to `max_id`: scripts lose bits above 2^53. Nothing has a time to
/// live: a key that has one, is of another type or has vanished is an error that names it.
///
/// The first key is made on first use, or by `vesta-server store init` where
/// [`auto_init`](Options::auto_init) is off: without it a Redis that was wiped, or is the wrong one, is
/// an error. A person may change `step`, raise `max_id`, and add a tag by writing its hash and then its
/// name; one is removed by `SREM vesta:segments:tags orders` and then `DEL vesta:segments:tag:orders`.
///
/// # What Redis must promise
/// A range that is forgotten is handed out again, and nothing would notice. So before each request Redis
/// is asked how it is set up, and refused unless it forgets nothing that it acknowledged: it has
/// `appendonly yes`, `appendfsync always` and `no-appendfsync-on-rewrite no`, it evicts no keys
/// (`maxmemory 0` or `maxmemory-policy noeviction`), it has no replicas, had none within the last hour
/// or so (a fail-over may lose changes), and is part of no cluster. One that may not be asked is refused
/// as well. There is no setting that permits it nevertheless.
///
/// After Redis was restored from a backup, raise each `max_id` above all that was handed out.
///
/// A user needs `+@connection +info +config|get +time +eval +type +pttl +exists +hget +hmget
/// +hset +hincrby +sadd +sismember +smembers` and `~vesta:*`.
#[derive(Debug)]
pub(super) struct RedisSegmentStore {
    server: Server,
    auto_init: bool,
    meta: String,
    tags: String,
    /// The beginning of the key of each tag.
    tag: String,
}

impl RedisSegmentStore {
    /// A store that connects with its first request.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] if the URL is not as described above.
    pub(super) fn open(url: &StoreUrl, options: &Options) -> Result<Self, OpenError> {
        let server = Server::open(url, options)?;
        let Config { prefix, .. } = server.config();
        let [meta, tags, tag] =
            ["meta", "tags", "tag:"].map(|kind| format!("{prefix}:segments:{kind}"));
        Ok(Self { server, auto_init: options.auto_init, meta, tags, tag })
    }

    /// Runs a script in a Redis that forgets nothing.
    fn run(
        &self,
        script: &str,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut call = Cmd::new();
        call.arg("EVAL").arg(script).arg(keys.len()).arg(keys).arg(arguments);
        self.server.ask(move |mut link| async move {
            // Before each: it may be set up in another way, or get a replica, at any time.
            link.examine().await?;
            match &link.doubts[..] {
                [] => Ok((link.ask(&call).await?, link)),
                doubts => Err(forgetful(doubts)),
            }
        })
    }

    fn create_missing(&self) -> &'static str {
        if self.auto_init { "1" } else { "0" }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }

    /// The meaning of a reply that no request takes for an answer.
    fn flaw(&self, reply: &[Vec<u8>]) -> StoreError {
        let words: Vec<_> = reply.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        StoreError::permanent(match words[..] {
            ["unopened"] => format!(
                "key `{}` does not exist, and auto_init is off or this Redis was wiped; have it \
                 created by `vesta-server store init`, after restoring what was lost",
                self.meta
            ),
            ["lost", key, witness] => format!(
                "key `{key}` is missing although `{witness}` is there: it was deleted, evicted or \
                 has expired; restore it{}",
                self.way_out(key)
            ),
            ["unlisted", key, tags] => format!(
                "key `{key}` is there although `{tags}` does not list it; `SADD` its name to have \
                 the tag back as it was, or `DEL` it to forget its numbers"
            ),
            ["negative", key] => format!("max_id of `{key}` is negative; correct it"),
            ["damaged", key] => return damaged(key),
            ["expires", key] => return errors::expires(key),
            ["type", key, kind] => format!(
                "key `{key}` is a {kind}, which no Vesta wrote; use another prefix= or remove it"
            ),
            ["schema", key, schema] => format!(
                "key `{key}` has schema `{schema}`, this Vesta knows schema 1; use the version that \
                 made it"
            ),
            _ => format!("a script gave an answer that makes no sense: {words:?}"),
        })
    }

    /// A tag that nobody needs any more can be taken off the list.
    fn way_out(&self, key: &str) -> String {
        let name = key.strip_prefix(&self.tag);
        name.map_or(String::new(), |name| format!(", or run `SREM {} {name}`", self.tags))
    }

    fn decode(&self, values: &[Vec<u8>]) -> Result<SegmentTag, StoreError> {
        let key =
            || self.key(&values.first().map_or("".into(), |key| String::from_utf8_lossy(key)));
        decode(values).ok_or_else(|| damaged(&key()))
    }
}

/// A tag from its values; those that people alone read may be missing or make no sense.
fn decode(values: &[Vec<u8>]) -> Option<SegmentTag> {
    let [key, max_id, step, description, update_time] = values else { return None };
    let there = |value: &&Vec<u8>| !value.is_empty();
    let text = Some(description).filter(there);
    let time = Some(update_time).filter(there);
    Some(SegmentTag {
        key: string(key)?,
        max_id: exact(max_id)?,
        step: exact(step)?,
        description: text.map(|text| String::from_utf8_lossy(text).into_owned()),
        update_time: time.and_then(|time| number(time)).map(UnixMillis),
    })
}

fn decimal(number: u64) -> Result<String, StoreError> {
    match i64::try_from(number) {
        Ok(number) => Ok(number.to_string()),
        Err(_) => Err(StoreError::permanent(format!("{number} has more than 63 bits"))),
    }
}

/// A number without a sign, as [`decimal`] writes it.
fn number(value: &[u8]) -> Option<u64> {
    exact(value).filter(|number| *number <= i64::MAX.unsigned_abs())
}

/// A number without leading zeros, blanks or a `+`; it may have a `-`.
fn exact<T: FromStr + ToString>(value: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(value).ok()?;
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

fn string(value: &[u8]) -> Option<String> {
    String::from_utf8(value.to_vec()).ok()
}

fn forgetful(doubts: &[&str]) -> StoreError {
    StoreError::permanent(format!(
        "this Redis may forget which numbers it handed out, and would hand them out again: {}. \
         Segment tags need one without replicas, with appendonly yes and appendfsync always",
        doubts.join("; ")
    ))
}

fn damaged(key: &str) -> StoreError {
    StoreError::permanent(format!("key `{key}` holds what no Vesta wrote; correct or restore it"))
}

impl SegmentStore for RedisSegmentStore {
    fn describe(&self) -> String {
        self.server.config().to_string()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let keys = [&*self.meta, &self.tags];
        let arguments = [self.create_missing(), &self.tag];
        let reply = self.run(TAGS, &keys, &arguments)?;
        match reply.split_first() {
            Some((word, values)) if word == b"found" => {
                values.chunks(VALUES).map(|values| self.decode(values)).collect()
            }
            _ => Err(self.flaw(&reply)),
        }
    }

    fn next_range(&self, name: &str, step: u64) -> Result<NextRange, StoreError> {
        let Some(most) = i64::MAX.unsigned_abs().checked_sub(step) else {
            return Ok(NextRange::UsedUp);
        };
        let key = self.key(name);
        let keys = [&*self.meta, &self.tags, &key];
        let arguments = [name, &decimal(step)?, &decimal(most)?];
        let reply = self.run(TAKE, &keys, &arguments)?;
        let words: Vec<&[u8]> = reply.iter().map(Vec::as_slice).collect();
        match words[..] {
            [b"taken", start] => {
                let start: u64 = number(start).ok_or_else(|| damaged(&key))?;
                Ok(NextRange::Numbers(start..start + step))
            }
            [b"none"] => Ok(NextRange::NoTag),
            [b"used_up"] => Ok(NextRange::UsedUp),
            _ => Err(self.flaw(&reply)),
        }
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let key = self.key(tag.key());
        let keys = [&*self.meta, &self.tags, &key];
        let (first, step) = (decimal(tag.first())?, decimal(tag.step())?);
        let description = tag.description().unwrap_or_default();
        let arguments = [self.create_missing(), tag.key(), &first, &step, description];
        let reply = self.run(CREATE, &keys, &arguments)?;
        let words: Vec<&[u8]> = reply.iter().map(Vec::as_slice).collect();
        match words[..] {
            [b"created"] => Ok(true),
            [b"exists"] => Ok(false),
            _ => Err(self.flaw(&reply)),
        }
    }
}
