//! Values of the less common options of [`Builder`](crate::Builder) and of
//! [`MachineSource`](crate::MachineSource), and the status of the service they make.

pub use crate::container::lost_with_container;
pub use crate::id::sequence::MAX_BORROW_MILLIS;
pub use crate::machine::{IpMap, WorkerNodeStore, host_ordinal};
pub use crate::populator::PopulatorKind;
pub use crate::state_dir::default_state_dir;
pub use crate::status::{MachineStatus, Status};
pub use crate::wait::Drive;
