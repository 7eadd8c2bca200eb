//! Requests of one round: questions common to all slots are asked once, and changes go side by side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::UnixMillis;

use super::{Rounds, Said};
use crate::clock::ClockPair;
use crate::error::{StoreError, ask_store};
use crate::lease::state::{Answer, Ask, DOUBT_CHECK, Findings, Write};
use crate::lease::{Amendment, Doubt, HostState, Leases, Local, Look, Namespace, Plan};

/// Smallest difference between clocks that is logged.
const WORTH_A_WORD: Duration = Duration::from_millis(500);

impl Rounds {
    /// Handles a comparison of clocks. A difference is logged once, and at its end the number of comparisons
    /// that differed.
    fn compare(&mut self, pair: ClockPair) {
        for slot in self.slots() {
            slot.leases.current().ticks.compare(&pair);
        }
        let (
            store,
            Said {
                clock, differed, ..
            },
        ) = (&self.drivers[0].plan().store, &mut self.said);
        *clock = Some(pair);
        if pair.apart() > WORTH_A_WORD {
            *differed += 1;
            if *differed == 1 {
                let (ours, theirs) = (pair.ours(), pair.theirs);
                tracing::warn!(store, %ours, %theirs, "this host's clock and the store's differ");
            }
        } else if *differed > 0 {
            let times = std::mem::take(differed);
            tracing::info!(
                store,
                times,
                "this host's clock and the store's agree again"
            );
        }
    }

    /// Asks the store and this host. Most questions are common to all slots.
    pub(super) fn ask(&mut self, asks: Vec<(usize, Ask)>) -> Vec<(usize, Answer)> {
        let mut store = Asked {
            leases: &self.leases,
            away: None,
        };
        let mut answers = Vec::with_capacity(asks.len());
        let (mut writes, mut writers) = (Vec::<(u64, Write)>::new(), Vec::new());
        let (mut keeps, mut keepers, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let (mut facts, mut amenders) = (BTreeMap::<u128, Amendment>::new(), Vec::new());
        for (number, ask) in asks {
            match ask {
                Ask::Write(machine, write) => {
                    writes.push((machine, *write));
                    writers.push(number);
                }
                Ask::Keep(machine) => {
                    keeps.push(machine);
                    keepers.push(number);
                }
                Ask::Amend(new) => {
                    amenders.push((number, new.namespace));
                    facts
                        .entry(new.namespace)
                        .or_insert_with(|| new.clone())
                        .and(&new);
                }
                ask => rest.push((number, ask)),
            }
        }
        if !writes.is_empty() {
            let written = self.leases.write_all(&writes);
            let unanswered = written.iter().map(|answer| match answer {
                Answer::Failed(error) if !error.is_permanent() => Some(error.clone()),
                _ => None,
            });
            // The store counts as unreachable if it answered no request.
            store.away = unanswered
                .collect::<Option<Vec<_>>>()
                .and_then(|mut errors| errors.pop());
            answers.extend(writers.into_iter().zip(written));
        }
        let amended: BTreeMap<_, _> = facts
            .into_iter()
            .map(|(uuid, facts)| {
                let answer = store.ask(|leases| {
                    Ok(leases
                        .amend(&facts)?
                        .map_or(Answer::NoNamespace, Answer::Namespace))
                });
                (uuid, answer)
            })
            .collect();
        answers.extend(
            amenders
                .into_iter()
                .map(|(number, uuid)| (number, amended[&uuid].clone())),
        );
        let clock = &self.factory.clock;
        let (mut namespace, mut look, mut compared) = (None, None, None);
        let mut surveys = BTreeMap::<Option<u64>, Vec<usize>>::new();
        for (number, ask) in rest {
            let driver = &mut self.drivers[number];
            let plan = driver.plan();
            let answer = match ask {
                Ask::Namespace => shared(&mut namespace, || {
                    store.ask(|leases| {
                        let found = leases.find()?;
                        Ok(Answer::Namespace(
                            found.map_or_else(|| create(leases, plan, None, None), Ok)?,
                        ))
                    })
                }),
                Ask::Doubt => shared(&mut look, || {
                    store.ask(|leases| {
                        Ok(Answer::Doubt(leases.look(clock.monotonic(), DOUBT_CHECK)?))
                    })
                }),
                Ask::Clock => shared(&mut compared, || {
                    store.ask(|leases| {
                        let pair = ClockPair::read(&**clock, || leases.store().now())?;
                        Ok(Answer::Clock(pair))
                    })
                }),
                Ask::Survey(part) => {
                    driver.lock = None;
                    if let Some(place) = driver.place {
                        self.host.give_up(place); // unlocks the file, so that the survey finds it
                    }
                    surveys.entry(part).or_default().push(number);
                    continue;
                }
                Ask::Record(machine) => {
                    store.ask(|leases| Ok(Answer::Found(leases.record(machine)?)))
                }
                Ask::Write(..) | Ask::Amend(_) | Ask::IsFree(_) | Ask::Keep(_) => {
                    unreachable!("answered above")
                }
            };
            answers.push((number, answer));
        }
        for (part, numbers) in surveys {
            let (plan, host) = (self.drivers[numbers[0]].plan(), &mut self.host);
            // The reach of a doubt counts from the later clock.
            let theirs = self.said.clock.map(|pair| pair.latest(clock.monotonic()));
            let wall = clock.wall().max(theirs.unwrap_or_default());
            let now = clock.monotonic();
            let answer = store.ask(|leases| survey(leases, plan, host, part, (now, wall)));
            if let Answer::Survey(_) = answer {
                // At the start, a pool server may not have answered yet.
                let usual = self.leases.store().usual_window();
                for driver in &mut self.drivers {
                    driver.machine.plan.learn(usual);
                }
            }
            answers.extend(numbers.into_iter().map(|number| (number, answer.clone())));
        }
        if let Some(Answer::Clock(Some(pair))) = compared {
            self.compare(pair);
        }
        let kept = self.keep(&keepers, &keeps);
        answers.extend(keepers.into_iter().zip(kept));
        answers
    }

    /// Locks claimed machine IDs, in the store and on this host. For a process that keeps the order the record decides:
    /// this host remembers its claim if it can, and no lock refuses it.
    fn keep(&mut self, keepers: &[usize], machines: &[u64]) -> Vec<Answer> {
        if self.plan().goes_by_record() {
            self.host.keep(machines, &*self.factory.clock);
            return vec![Answer::Kept(true); machines.len()];
        }
        let mut answers = Vec::new();
        for (number, machine) in keepers.iter().zip(machines) {
            let lock = &mut self.drivers[*number].lock;
            *lock = None; // it may hold the same machine ID
            answers.push(match ask_store(|| self.leases.lock(*machine)) {
                Ok(locked) => {
                    *lock = locked;
                    Answer::Kept(lock.is_some())
                }
                Err(error) => Answer::Failed(error),
            });
        }
        let locked = |answer: &Answer| matches!(answer, Answer::Kept(true));
        let wanted = machines
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| locked(answer));
        let wanted: Vec<u64> = wanted.map(|(machine, _)| *machine).collect();
        let mut kept = self.host.keep(&wanted, &*self.factory.clock).into_iter();
        for answer in answers.iter_mut().filter(|answer| locked(answer)) {
            *answer = Answer::Kept(kept.next().unwrap_or(false));
        }
        answers
    }
}

/// Store during one round. After an unanswered request, all further ones fail with the same error.
struct Asked<'a> {
    leases: &'a Leases,
    away: Option<StoreError>,
}

impl Asked<'_> {
    fn ask(&mut self, question: impl FnOnce(&Leases) -> Result<Answer, StoreError>) -> Answer {
        if let Some(error) = &self.away {
            return Answer::Failed(error.clone());
        }
        ask_store(|| question(self.leases)).unwrap_or_else(|error| {
            self.away = Some(error.clone()).filter(|error| !error.is_permanent());
            Answer::Failed(error)
        })
    }
}

/// Answer to a question common to all slots: asked once, then reused.
fn shared(known: &mut Option<Answer>, ask: impl FnOnce() -> Answer) -> Answer {
    known.get_or_insert_with(ask).clone()
}

fn create(
    leases: &Leases,
    plan: &Plan,
    doubt: Option<Doubt>,
    writer: Option<String>,
) -> Result<Namespace, StoreError> {
    leases.create(&plan.meta.fingerprint(), &plan.facts(0, doubt, writer))
}

/// Input of the searches.
fn survey(
    leases: &Leases,
    plan: &Plan,
    host: &mut HostState,
    part: Option<u64>,
    (now, wall): (Duration, UnixMillis),
) -> Result<Answer, StoreError> {
    let Look {
        namespace,
        seen: doubt,
        server,
        ..
    } = leases.look_at(leases.find()?, now)?;
    let locals: BTreeMap<_, _> = host
        .survey()
        .into_iter()
        .map(|local| (local.machine, local))
        .collect();
    let namespace = match namespace {
        Some(namespace) => namespace,
        None => {
            let mut remembered = locals.values().cloned().chain(host.own(None));
            // Nothing is written: an operator may still restore the old entries.
            if let Some(local) = remembered.find(|local| local.record.namespace != 0) {
                return Ok(Answer::Forgotten(Box::new(local)));
            }
            let doubt = plan.first_doubt(doubt.as_ref(), wall);
            create(leases, plan, doubt, server.clone())?
        }
    };
    // A claim that is not seen here takes effect later, and then sees the doubt. A server that took over may lack
    // claims: it is asked for that after they were read.
    let mut reaches_nothing = namespace.doubt.clone();
    if let Some(doubt) = reaches_nothing.as_ref() {
        let took_over = |seen: Doubt| seen.took_over;
        let unclaimed = Plan::waits_for_reach(doubt, wall)
            && leases.is_unclaimed()?
            && !leases.store().doubt()?.is_some_and(took_over);
        reaches_nothing.take_if(|_| !unclaimed);
    }
    let own = host.own(Some(namespace.uuid));
    let of = |(machine, local): (u64, Local)| (machine, local.of(namespace.uuid));
    let locals: BTreeMap<_, _> = locals.into_iter().map(of).collect();
    let part = part.unwrap_or_else(|| plan.home_part(&locals));
    let remembered = locals.values().chain(&own).map(|local| local.machine);
    let snapshot = leases.snapshot_of_part(&plan.machines_of(part), remembered)?;
    Ok(Answer::Survey(Arc::new(Findings {
        doubt,
        server,
        reaches_nothing,
        part,
        snapshot,
        locals,
        own,
    })))
}
