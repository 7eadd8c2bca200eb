//! Answers as messages of the protocol.

use vesta_intf::grpc::v1;

use super::{NewSerial, Serial, SerialParsed};

impl From<Serial> for v1::Serial {
    fn from(it: Serial) -> Self {
        Self {
            serial: it.serial,
            counter: it.counter.0,
        }
    }
}

impl From<SerialParsed> for v1::ParsedSerial {
    fn from(it: SerialParsed) -> Self {
        Self {
            tag: it.tag,
            period: it.period,
            date: it.date,
            counter: it.counter.0,
            check: it.check,
        }
    }
}

impl From<v1::CreateSerialRequest> for NewSerial {
    fn from(it: v1::CreateSerialRequest) -> Self {
        Self {
            tag: it.tag,
            pattern: it.pattern,
            reset: it.reset,
            zone: it.zone,
            step: it.step,
            first: it.first,
            description: it.description,
            max_tags: it.max_tags,
        }
    }
}
