//! Identity of the data behind a pool server, the place of its file, and the mark of a store that is a second one.
//! Members compare identities, but a number is copied with its file: so a file is served at one place only.

use std::fmt;

use vesta_intf::UnixMillis;

use super::codec::{Entry, Fields, SCHEMA};
use super::kv::KvStore;
use crate::clock::{Clock as _, SystemClock};
use crate::error::StoreError;

/// Area of the entries below.
const AREA: &str = "pool";
const IDENTITY: &str = "identity";
const PLACE: &str = "place";
const OLDER: &str = "older";

/// Identity of the data in a store. The order is that of age: the smaller one is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreIdentity {
    /// When it was drawn, by the clock of the server that drew it; 0 in stores of earlier versions.
    pub created: UnixMillis,
    /// Random number. Stores with different ones are different stores.
    pub number: u64,
}

impl StoreIdentity {
    fn draw() -> Self {
        Self {
            created: SystemClock::new().wall(),
            number: crate::random::u63(),
        }
    }
}

/// As in `?id=` of a pool server's URL.
impl fmt::Display for StoreIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.number)
    }
}

impl Entry for StoreIdentity {
    fn encode(&self) -> String {
        let created = match self.created.0 {
            0 => String::new(),
            moment => format!(r#","created":"{moment}""#),
        };
        format!(r#"{{"schema":{SCHEMA},"identity":"{self}"{created}}}"#)
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        Ok(Self {
            created: UnixMillis(fields.if_present("created")?.unwrap_or_default()),
            number: fields.hex_64("identity")?,
        })
    }
}

/// Mark of a store that is a second one behind its URL. It counts for this identity only: a new one clears it.
#[derive(Debug, PartialEq)]
struct Older {
    own: u64,
    older: StoreIdentity,
}

impl Entry for Older {
    fn encode(&self) -> String {
        let Self { own, older } = self;
        let created = older.created.0;
        format!(
            r#"{{"schema":{SCHEMA},"own":"{own:016x}","older":"{older}","created":"{created}"}}"#
        )
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let older = StoreIdentity {
            created: UnixMillis(fields.number("created")?),
            number: fields.hex_64("older")?,
        };
        let own = fields.hex_64("own")?;
        Ok(Self { own, older })
    }
}

/// Place of a store's file. A copy has another one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilePlace {
    /// Identity of the machine; empty if the system has none.
    pub machine: String,
    /// Identity of the system's start; empty if the system has none.
    pub boot: String,
    /// Number of the device; may differ after each start of the system.
    pub device: u64,
    /// Number of the file on its device.
    pub inode: u64,
    /// When the file was made, in nanoseconds since 1970: a copy has its own. 0 if the file system does not keep it.
    pub born: u64,
}

impl FilePlace {
    /// True if a file here is the one that was there.
    fn is_that_of(&self, known: &Self) -> bool {
        let file = |it: &Self| (it.machine.clone(), it.inode, it.born);
        file(self) == file(known) && (self.device == known.device || self.boot != known.boot)
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = match &*self.machine {
            "" => "unnamed",
            machine => machine,
        };
        write!(
            f,
            "machine {machine}, device {}, inode {}",
            self.device, self.inode
        )
    }
}

impl Entry for FilePlace {
    fn encode(&self) -> String {
        let Self {
            device,
            inode,
            born,
            ..
        } = self;
        let [machine, boot] =
            [&self.machine, &self.boot].map(|it| serde_json::Value::from(it.as_str()));
        format!(
            r#"{{"schema":{SCHEMA},"machine":{machine},"boot":{boot},"device":"{device}","inode":"{inode}","born":"{born}"}}"#
        )
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        Ok(Self {
            machine: fields.text("machine")?.into(),
            boot: fields.text("boot")?.into(),
            device: fields.number("device")?,
            inode: fields.number("inode")?,
            born: fields.number("born")?,
        })
    }
}

fn get<T: Entry>(store: &dyn KvStore, key: &str) -> Result<Option<T>, StoreError> {
    let damaged = |why| StoreError::permanent(format!("entry `{key}` of {AREA} is damaged: {why}"));
    let text = store.get(AREA, key)?;
    text.map(|text| T::decode(&text))
        .transpose()
        .map_err(damaged)
}

fn put<T: Entry>(
    store: &dyn KvStore,
    key: &str,
    old: Option<&T>,
    new: &T,
) -> Result<bool, StoreError> {
    let old = old.map(T::encode);
    store.put_if(AREA, key, old.as_deref(), &new.encode())
}

/// Identity of the data in a store, drawn at the first call.
///
/// # Errors
/// [`StoreError`] if the store does not answer, or the entry is damaged.
pub fn identity(store: &dyn KvStore) -> Result<StoreIdentity, StoreError> {
    if let Some(found) = get(store, IDENTITY)? {
        return Ok(found);
    }
    put(store, IDENTITY, None, &StoreIdentity::draw())?;
    get(store, IDENTITY)?
        .ok_or_else(|| StoreError::permanent("the identity of the store was deleted"))
}

/// Reason why a pool server must not serve this store: its file lies elsewhere than it did, or an older store was seen
/// behind the same URL. Notes the place of a file that has none, or that stayed while its system started again.
///
/// # Errors
/// [`StoreError`] if the store does not answer, or an entry is damaged.
pub fn refusal(store: &dyn KvStore) -> Result<Option<String>, StoreError> {
    let own = identity(store)?;
    if let Some(Older { older, .. }) = get::<Older>(store, OLDER)?.filter(|it| it.own == own.number)
    {
        return Ok(Some(format!(
            "members met an older store ({older}) behind the same URL, so this one ({own}) would hand out its machine IDs \
             again; take this server out of their URL, or run `vesta store adopt` if the older store is gone for good"
        )));
    }
    let Some(here) = store.file_place()? else {
        return Ok(None);
    };
    let known = get::<FilePlace>(store, PLACE)?;
    match &known {
        Some(known) if !here.is_that_of(known) => {
            return Ok(Some(format!(
                "the file was moved or copied: it belongs to {known}, and lies at {here}; serve the original, or run \
                 `vesta store adopt` if that is gone for good"
            )));
        }
        Some(known) if here == *known => return Ok(None),
        _ => {}
    }
    put(store, PLACE, known.as_ref(), &here)?; // if another server was faster, the next look compares
    Ok(None)
}

/// Notes that an older store was seen behind the same URL. Has no effect if the store is the older one.
///
/// # Errors
/// [`StoreError`] if the store does not answer, or an entry is damaged.
pub fn note_older(store: &dyn KvStore, older: StoreIdentity) -> Result<(), StoreError> {
    let own = identity(store)?;
    let known = get::<Older>(store, OLDER)?;
    let is_known = known.as_ref().is_some_and(|it| it.own == own.number);
    if is_known || own.number == older.number || own <= older {
        return Ok(());
    }
    let new = Older {
        own: own.number,
        older,
    };
    put(store, OLDER, known.as_ref(), &new).map(drop)
}

/// Separates a store from the one that it was copied from: with a new identity, at the place where it lies now. Floors
/// must rule out before that windows of the original's members are used again.
///
/// # Errors
/// [`StoreError`] if the store does not answer, changes meanwhile, or an entry is damaged.
pub fn adopt(store: &dyn KvStore) -> Result<StoreIdentity, StoreError> {
    let (old, new) = (identity(store)?, StoreIdentity::draw());
    if let Some(here) = store.file_place()? {
        let known = get::<FilePlace>(store, PLACE)?;
        if known.as_ref() != Some(&here) {
            put(store, PLACE, known.as_ref(), &here)?;
        }
    }
    match put(store, IDENTITY, Some(&old), &new)? {
        true => Ok(new),
        false => Err(StoreError::permanent(
            "the identity of the store changed meanwhile; run one command at a time",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryStore;

    fn place() -> FilePlace {
        FilePlace {
            machine: "m".into(),
            boot: "b".into(),
            device: 1,
            inode: 2,
            born: 3,
        }
    }

    #[test]
    fn a_file_stays_itself_over_a_start_of_its_system_only() {
        let changed = |change: &dyn Fn(&mut FilePlace)| {
            let mut here = place();
            change(&mut here);
            here.is_that_of(&place())
        };
        assert!(changed(&|_| ()));
        assert!(changed(&|it| it.boot = "c".into()));
        assert!(changed(&|it| (it.boot, it.device) = ("c".into(), 9)));
        for moved in [
            &(|it: &mut FilePlace| it.device = 9) as &dyn Fn(&mut FilePlace),
            &|it| it.machine = "n".into(),
            &|it| it.inode = 9,
            &|it| it.born = 9,
            &|it| (it.boot, it.born) = ("c".into(), 9),
        ] {
            assert!(!changed(moved));
        }
        assert_eq!(FilePlace::decode(&place().encode()), Ok(place()));
    }

    #[test]
    fn an_identity_is_drawn_once_and_knows_its_age() {
        let store = MemoryStore::new();
        let drawn = identity(&store).expect("memory");
        assert_eq!(identity(&store).expect("memory"), drawn);
        assert!(drawn.created.0 > 0);
        assert_eq!(StoreIdentity::decode(&drawn.encode()), Ok(drawn));
        // As the first versions wrote it.
        let text = r#"{"schema":1,"identity":"00000000000000ff"}"#;
        let old = StoreIdentity::decode(text).expect("an identity");
        assert_eq!((old.number, old.created), (255, UnixMillis(0)));
        assert!(old < drawn);
    }

    #[test]
    fn a_store_is_refused_only_because_of_an_older_one_and_until_it_is_adopted() {
        let store = MemoryStore::new();
        let own = identity(&store).expect("memory");
        let at = |created, number| StoreIdentity {
            created: UnixMillis(created),
            number,
        };
        let refused = || refusal(&store).expect("memory");
        for other in [
            own,
            at(own.created.0 + 1, 7),
            at(own.created.0, own.number + 1),
        ] {
            note_older(&store, other).expect("memory");
            assert_eq!(refused(), None, "{other:?}");
        }
        note_older(&store, at(own.created.0 - 1, 7)).expect("memory");
        let why = refused().expect("it is the younger one");
        assert!(why.contains("an older store (0000000000000007)"), "{why}");
        let adopted = adopt(&store).expect("memory");
        assert_ne!(adopted.number, own.number);
        assert_eq!(refused(), None);
        note_older(&store, at(1, 8)).expect("memory");
        assert!(refused().is_some(), "the mark is replaced");
    }
}
