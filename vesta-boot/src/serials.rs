//! Serials: their answers, their operations and their commands. Their settings are in `settings`, because the
//! commands need all settings to open the store.

mod answers;
pub(crate) mod command;
mod operations;

pub use answers::{
    ManySerials, NewSerial, OneOrManySerials, Serial, SerialCreated, SerialNow, SerialParsed,
    SerialTags, StoredSerial,
};
pub(crate) use answers::{room, trouble};
pub use command::SerialCommand;
