#!/usr/bin/env python3
"""Named faults: each was once planted manually, and no test noticed it, or only a simulation did.

    scripts/check/mutants/named.py [--here] [NAME …]      all of them, or the named ones
    scripts/check/mutants/named.py --list
    scripts/check/mutants/named.py --check                only checks that each still fits the code

Puts one fault after another into a copy of the sources and runs the test that must then fail. Exits with 1
if a test does not fail, or if a fault no longer fits the code: it stands for a promise, so re-plant it and
never drop it. `--here` works in this checkout and its target folder, which is quicker; each file is
restored.
"""
import os
import pathlib
import subprocess
import sys

SERVICE = "cargo test --quiet -p vesta-service"
NUMBERS = "cargo test --quiet -p vesta-numbers"
LOOM = (
    "env RUSTFLAGS=--cfg=loom CARGO_TARGET_DIR=target/loom CARGO_PROFILE_DEV_DEBUG=0"
    f" CARGO_PROFILE_DEV_OPT_LEVEL=2 {SERVICE} --lib word::races::"
)

# name: (file, text that occurs there once, replacement, command that must fail)
FAULTS = {
    "falling-bound-passes-the-pool_server": (
        "vesta-service/src/lease/pool_server.rs",
        '(new.bound < old.bound).then_some("the bound falls")',
        '(new.bound < old.from).then_some("the bound falls")',
        "cargo test --quiet -p vesta-server --all-features --test server pool_server::a_record_that",
    ),
    "other-identity-accepted": (
        "vesta-store/src/backends/pool_server/look.rs",
        "seen.iter().find(|(_, it, _)| it.number != oldest.number)",
        "seen.iter().find(|(_, it, _)| it.number == !oldest.number)",
        "cargo test --quiet -p vesta-server --all-features --test server pool_server::a_server_with_another",
    ),
    "requests-to-another-store-answered": (
        "vesta-server/src/pool_server.rs",
        "if meant != seen.identity.number {",
        "if meant == !seen.identity.number {",
        "cargo test --quiet -p vesta-server --all-features --test server pool_server::another_store_at",
    ),
    "fast-path-open-in-standby": (
        "vesta-service/src/lease/slot/held.rs",
        "if self.ends_at.load(Ordering::Relaxed) == UNENDING {",
        "if self.ends_at.load(Ordering::Relaxed) > 0 {",
        f"{SERVICE} --test service cut_off::",
    ),
    "end-of-the-lease-not-checked": (
        "vesta-service/src/lease/slot/held.rs",
        "if self.left().is_zero() && !self.is_sealed() {",
        "if self.left().is_zero() && self.is_sealed() {",
        f"{SERVICE} --test service cut_off::",
    ),
    "grace-ends-in-the-first-part": (
        "vesta-service/src/lease/state/claiming.rs",
        "with_grace || !candidate.in_grace",
        "with_grace || candidate.machine > 0",
        f"{SERVICE} --test service blocks::an_owner_within",
    ),
    "full-part-read-for-ever": (
        "vesta-service/src/lease/state/plan.rs",
        "first + (part - first + leap) % count",
        "first + (part - first + leap * 0) % count",
        f"{SERVICE} --test service blocks::a_full_block",
    ),
    "forgotten-record-of-another-part": (
        "vesta-service/src/lease/state/claiming.rs",
        "block_of(local.machine) == block)",
        "machines.contains(&local.machine) && block < u64::MAX)",
        f"{SERVICE} --test service blocks::a_record_that_the_store_forgot",
    ),
    "conflict-fails-the-group": (
        "vesta-store/src/backends/sqlite/kv.rs",
        """        Ok(changed == 1)
    };
    let mut done""",
        """        (changed == 1).then_some(true).ok_or(rusqlite::Error::QueryReturnedNoRows)
    };
    let mut done""",
        "cargo test --quiet -p vesta-store --all-features --lib sqlite::group",
    ),
    "unknown-outcome-taken-for-a-conflict": (
        "vesta-store/src/backends/sqlite/group.rs",
        "answer.map_err(Clone::clone)",
        "Ok(answer.unwrap_or(vec![false]))",
        "cargo test --quiet -p vesta-store --all-features --lib sqlite::group",
    ),
    "namespace-made-anew": (
        "vesta-service/src/lease/leases.rs",
        "        if let Some((key, _)) = self.area.list()?.first()\n            && self.find()?.is_none()\n",
        "        if let Some((key, _)) = self.area.list()?.first()\n            && self.find()?.is_some()\n",
        f"{SERVICE} --lib lease::leases::tests::records_without",
    ),
    "namespace-replaced-during-a-claim": (
        "vesta-service/src/lease/state/attempt.rs",
        "if namespace.uuid != self.ground.namespace {",
        "if namespace.uuid != self.ground.namespace && self.mine.is_none() {",
        f"{SERVICE} --test service floors::a_claim_is_void_if_the_namespace",
    ),
    "later-doubt-overwrites-the-first": (
        "vesta-service/src/lease/record.rs",
        "let mut doubt = old.doubt.as_ref().or(self.doubt.as_ref()).cloned();",
        "let mut doubt = self.doubt.as_ref().or(old.doubt.as_ref()).cloned();",
        f"{SERVICE} --lib lease::leases::tests::first_doubt",
    ),
    "last-file-of-ends-counts": (
        "vesta-numbers/src/segment/ends.rs",
        "                    *highest = end.max(*highest);",
        "                    *highest = end;",
        f"{NUMBERS} --lib segment::ends::tests::the_highest_end",
    ),
    "earlier-ends-dropped": (
        "vesta-numbers/src/segment/ends.rs",
        "let mut ends = self.before.clone();",
        "let mut ends = BTreeMap::new();",
        f"{NUMBERS} --lib segment::ends::tests::ends_of_earlier",
    ),
    "creations-sent-again-in-halves": (
        "vesta-service/src/lease/bulk.rs",
        "let once = chunk.iter().any(|change| change.put.old.is_none());",
        "let once = false;",
        f"{SERVICE} --lib lease::bulk::tests::creation",
    ),
    "tokens-compared-by-four-bytes": (
        "vesta-net/src/auth.rs",
        "token.1.digest.ct_eq(&digest)",
        "token.1.digest[..4].ct_eq(&digest[..4])",
        "cargo test --quiet -p vesta-boot --lib net::auth::tests::token_is_known",
    ),
    "bound-not-checked-for-a-caller-who-waits": (
        "vesta-service/src/lease/slot/held/reserved.rs",
        "self.populator.claim(now, 1, &rules, self.bound())",
        "self.populator.claim(now, 1, &rules, u64::MAX)",
        f"{SERVICE} --test service leases::waiting_caller",
    ),
    "place-in-line-not-given-back": (
        "vesta-service/src/lease/slot/held/reserved.rs",
        "            self.lease.give_up(self.position);\n",
        "",
        f"{SERVICE} --lib turn::tests::the_last_positions",
    ),
    "place-given-up-used-when-due": (
        "vesta-service/src/lease/slot/held/reserved.rs",
        "given_up.split_off(&self.rules.cap(now, 1))",
        "given_up.split_off(&0)",
        f"{SERVICE} --lib turn::tests::a_position_that_was_given_up",
    ),
    "async-calls-hold-no-place-in-line": (
        "vesta-service/src/future.rs",
        "until_async(|| turn.id())",
        "until_async(|| service.try_gen_id().or_else(|_| turn.id()))",
        f"{SERVICE} --features async --test service async_calls::waiting_calls",
    ),
    "reserved-position-issued-in-a-child": (
        "vesta-service/src/lease/slot/held/reserved.rs",
        "        if ticks.is_forked() {\n",
        "        if ticks.is_forked() && self.is_issued {\n",
        f"{SERVICE} --features async --test fork call_that_waits",
    ),
    "bound-raised-by-twice-what-was-acknowledged": (
        "vesta-service/src/lease/slot/driver.rs",
        "held.raise(record.bound);",
        "held.raise(record.bound + (record.bound - held.bound()));",
        f"{SERVICE} --test service leases::renewal_raises",
    ),
    "fast-path-open-in-a-child": (
        "vesta-service/src/lease/slot/held.rs",
        "pub(crate) fn close_in_child(&self) {\n        self.gate.close();",
        "pub(crate) fn close_in_child(&self) {",
        f"{SERVICE} --test fork child_leaves_store_and_files_alone",
    ),
    "segment-numbers-at-hand-in-a-child": (
        "vesta-numbers/src/segment/cursor.rs",
        "        self.end.store(0, Ordering::Relaxed);\n",
        "",
        f"{SERVICE} --test fork forked_child_issues_no_segment",
    ),
    "prefetched-ids-in-a-child": (
        "vesta-client/src/prefetch/ring.rs",
        "if self.open.load(Ordering::Relaxed) != process() {",
        "if self.open.load(Ordering::Relaxed) == 0 {",
        "cargo test --quiet -p vesta-client --test client fork::child_hands_out",
    ),
    "batch-leaves-no-room": (
        "vesta-service/src/id/sequence.rs",
        "if want == 1 {\n            0\n",
        "if want > 0 {\n            0\n",
        f"{SERVICE} --test service capacity::single_calls_are_served",
    ),
    "claim-given-back-under-another": (
        "vesta-service/src/id/populator/word.rs",
        "let is_last = self.position.load(Ordering::Relaxed) == end;",
        "let is_last = self.position.load(Ordering::Relaxed) >= end;",
        f"{SERVICE} --lib backlog::tests::cancelled_batch",
    ),
    "word-taken-away-without-the-barrier": (
        "vesta-service/src/id/populator/word.rs",
        "if !is_own && !barrier::in_all_threads() {",
        "if !is_own && !barrier::exists() {",
        LOOM,
    ),
    "busy-sole-user-not-waited-for": (
        "vesta-service/src/id/populator/word.rs",
        "if busy.load(Ordering::Acquire) == 0 {",
        "if busy.load(Ordering::Acquire) <= thread {",
        LOOM,
    ),
    "position-read-before-busy-is-set": (
        "vesta-service/src/id/populator/word.rs",
        "        let sole = self.sole(hands, THREAD.with(Cell::get));\n",
        "        let early = self.position.load(Ordering::Relaxed);\n"
        "        let sole = self.sole(hands, THREAD.with(Cell::get));\n"
        "        if sole.is_some() && early < end {\n"
        "            self.position.store(early + 1, Ordering::Relaxed);\n"
        "            return Ok(early);\n"
        "        }\n",
        f"{SERVICE} --all-features --test fork signals::",
    ),
    "busy-cleared-before-the-position-is-written": (
        "vesta-service/src/id/populator/word.rs",
        "self.0.store(0, Ordering::Release); // step 6",
        "self.0.store(0, Ordering::Relaxed); // step 6",
        LOOM,
    ),
    "hands-not-looked-at-again": (
        "vesta-service/src/id/populator/word.rs",
        "(self.hands.0.load(Ordering::Relaxed) == hands).then_some(sole)",
        "(self.hands.0.load(Ordering::Relaxed) >= FREE).then_some(sole)",
        LOOM,
    ),
    "one-busy-for-all-turns": (
        "vesta-service/src/id/populator/word.rs",
        "let busy = &self.busy[usize::try_from(turn).unwrap_or(0)];",
        "let busy = &self.busy[usize::try_from(turn).unwrap_or(0) * 0];",
        LOOM,
    ),
    "signal-in-the-middle-of-a-change-not-seen": (
        "vesta-service/src/id/populator/word.rs",
        "        if busy.load(Ordering::Relaxed) != 0 {\n            return None;",
        "        if busy.load(Ordering::Relaxed) == 1 {\n            return None;",
        f"{SERVICE} --all-features --test fork signals::",
    ),
}


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(FAULTS))
        return 0
    root = pathlib.Path(__file__).resolve().parents[3]
    if arguments == ["--check"]:
        return 0 if all([fits(root, name) for name in FAULTS]) else 1
    here = "--here" in arguments
    names = [name for name in arguments if name != "--here"] or list(FAULTS)
    if unknown := [name for name in names if name not in FAULTS]:
        print(f"unknown fault {unknown[0]}; --list shows all", file=sys.stderr)
        return 64
    environment = dict(os.environ, RUST_BACKTRACE="0")
    if not here:
        folder = pathlib.Path(
            environment.get("VESTA_MUTANTS_DIR")
            or pathlib.Path(environment.get("CARGO_TARGET_DIR", root / "target")) / "mutants"
        ).resolve()
        environment["CARGO_TARGET_DIR"] = str(folder / "target-named")
        root = copy(root, folder / "named")
    survivors = [name for name in names if not noticed(root, environment, name)]
    print(f"mutants: named: {len(names) - len(survivors)} of {len(names)} noticed")
    return 1 if survivors else 0


def copy(root, to):
    """Copies the files that git tracks, with their times, so that unchanged ones are not built again."""
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True
    ).stdout
    to.mkdir(parents=True, exist_ok=True)
    pack = subprocess.Popen(["tar", "c", "--null", "-T", "-"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(["tar", "x"], cwd=to, stdin=pack.stdout)
    pack.stdin.write(files)
    pack.stdin.close()
    if unpack.wait() or pack.wait():
        sys.exit(f"cannot copy the sources to {to}")
    return to


def fits(root, name):
    file, old, _, _ = FAULTS[name]
    count = (root / file).read_text().count(old)
    if count != 1:
        print(f"  {name}: {file} has the text to replace {count} times, expected once")
    return count == 1


def noticed(root, environment, name):
    file, old, new, command = FAULTS[name]
    path = root / file
    if not fits(root, name):
        return False
    text = path.read_text()
    words = command.split()
    build = words + ["--no-run"]
    # A build takes no test name.
    if not words[-1].startswith("-") and words[-2] not in ("--test", "-p"):
        build.remove(words[-1])
    try:
        path.write_text(text.replace(old, new))
        if subprocess.run(build, cwd=root, env=environment, capture_output=True).returncode:
            print(f"  {name}: does not compile with the fault; re-plant it")
            return False
        test = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
    finally:
        path.write_text(text)
    if "test result: FAILED" not in test.stdout:
        print(f"  survivor: {name}: `{command}` does not fail")
        return False
    print(f"  {name}: noticed", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
