//! Symmetry: states that differ only in the numbers of processes and machine IDs. Exploring one of
//! them is enough, because no rule depends on these numbers.

use super::small;
use super::state::{
    Answer, Backup, Births, MACHINES, PROCESSES, Process, Rec, Request, Sent, State,
};

/// New number of each process and each machine ID.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering {
    pub(super) processes: [usize; PROCESSES],
    pub(super) machines: [usize; MACHINES],
}

/// Renumbers processes and machine IDs by what they are doing. If several do the same, equivalent
/// states may stay apart; they are then explored one by one.
pub(super) fn sort(state: &mut State) {
    const NOBODY: [usize; PROCESSES] = [0; PROCESSES];
    let as_it_is = Numbering {
        processes: NOBODY,
        machines: [0, 1],
    };
    let what = |machine: usize| {
        let record = as_it_is.rec(state.records[machine]);
        let birth = as_it_is.number(state.births[machine]);
        let floor = state.claimed_above[machine];
        (
            record,
            birth,
            floor,
            state.issued[machine],
            state.exposed[machine],
        )
    };
    let machines = if what(1) > what(0) { [1, 0] } else { [0, 1] };
    // Independent of the process: its part of its requests' numbers is left out.
    let seen = Numbering {
        processes: NOBODY,
        machines,
    };
    let keys: [_; PROCESSES] = std::array::from_fn(|process| {
        let mut remembered = [None; MACHINES];
        for (machine, rec) in state.remembered[process].into_iter().enumerate() {
            remembered[machines[machine]] = rec.map(|rec| seen.rec(rec));
        }
        (
            seen.process(state.processes[process]),
            state.sent[process],
            remembered,
        )
    });
    let mut from: [usize; PROCESSES] = std::array::from_fn(|process| process);
    from.sort_by(|one, other| keys[*other].cmp(&keys[*one]));
    let mut processes = [0; PROCESSES];
    for (to, from) in from.into_iter().enumerate() {
        processes[from] = to;
    }
    if processes.is_sorted() && machines.is_sorted() {
        return;
    }
    *state = Numbering {
        processes,
        machines,
    }
    .apply(state);
}

impl Numbering {
    /// Returns the same state with these numbers.
    pub(super) fn apply(&self, state: &State) -> State {
        let mut new = state.clone();
        for (from, to) in self.processes.into_iter().enumerate() {
            new.processes[to] = self.process(state.processes[from]);
            new.sent[to] = state.sent[from];
            for (machine, own) in state.own[from].into_iter().enumerate() {
                new.own[to][self.machines[machine]] = own;
            }
            for (machine, rec) in state.remembered[from].into_iter().enumerate() {
                new.remembered[to][self.machines[machine]] = rec.map(|rec| self.rec(rec));
            }
        }
        for (from, to) in self.machines.into_iter().enumerate() {
            new.records[to] = self.rec(state.records[from]);
            new.claimed_above[to] = state.claimed_above[from];
            new.issued[to] = state.issued[from];
            new.exposed[to] = state.exposed[from];
        }
        new.births = self.births(state.births);
        new.backup = state.backup.map(|backup| {
            let mut records = backup.records;
            for (from, to) in self.machines.into_iter().enumerate() {
                records[to] = self.rec(backup.records[from]);
            }
            Backup {
                records,
                births: self.births(backup.births),
                ..backup
            }
        });
        for request in &mut new.late {
            *request = self.request(*request);
        }
        new.late.sort_unstable();
        new
    }

    fn machine(&self, machine: u8) -> u8 {
        small(self.machines[usize::from(machine)])
    }

    fn number(&self, number: u8) -> u8 {
        match number.checked_sub(1).map(|n| n / 16) {
            Some(process) => number % 16 + 16 * small(self.processes[usize::from(process)]),
            None => 0,
        }
    }

    fn rec(&self, rec: Rec) -> Rec {
        let [birth, owner, attempt] =
            [rec.birth, rec.owner, rec.attempt].map(|number| self.number(number));
        Rec {
            birth,
            owner,
            attempt,
            ..rec
        }
    }

    fn births(&self, births: Births) -> Births {
        let mut new = Births::default();
        for (from, to) in self.machines.into_iter().enumerate() {
            new[to] = self.number(births[from]);
        }
        new
    }

    fn request(&self, request: Request) -> Request {
        match request {
            Request::Record { machine, old, new } => Request::Record {
                machine: self.machine(machine),
                old: self.rec(old),
                new: self.rec(new),
            },
            Request::Marks { old, new } => Request::Marks {
                old: self.births(old),
                new: self.births(new),
            },
        }
    }

    fn answer(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Done => Answer::Done,
            Answer::Conflict(rec) => Answer::Conflict(self.rec(rec)),
            Answer::Marks(births) => Answer::Marks(self.births(births)),
        }
    }

    fn process(&self, process: Process) -> Process {
        let last = |(machine, next)| (self.machine(machine), next);
        match process {
            Process::Idle { last: line } => Process::Idle {
                last: line.map(last),
            },
            Process::Claiming(mut claiming) => {
                claiming.machine = self.machine(claiming.machine);
                claiming.number = self.number(claiming.number);
                claiming.record = self.rec(claiming.record);
                claiming.births = self.births(claiming.births);
                claiming.sent = claiming.sent.map(|sent| match sent {
                    Sent::Record(rec) => Sent::Record(self.rec(rec)),
                    Sent::Marks(births) => Sent::Marks(self.births(births)),
                });
                claiming.reply = claiming.reply.map(|reply| self.answer(reply));
                claiming.last = claiming.last.map(last);
                Process::Claiming(claiming)
            }
            Process::Holding(mut holding) => {
                holding.machine = self.machine(holding.machine);
                holding.record = self.rec(holding.record);
                holding.pending = holding.pending.map(|rec| self.rec(rec));
                holding.reply = holding.reply.map(|reply| self.answer(reply));
                Process::Holding(holding)
            }
        }
    }
}
