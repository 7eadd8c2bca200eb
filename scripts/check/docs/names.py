#!/usr/bin/env python3
"""Each thing has one name at every door. Collects the members of the JSON answers (REST, admin listener, command line), the
fields of the protocol and the labels of metrics into docs/inside/names.md.

names.py check     fails if a name is not in the page, if it has several types, or if a door uses a name that another one
                   took the place of
names.py write     writes the page"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs/inside/names.md"

# One name for one thing. A door that uses an old name fails.
ONE = [
    ("the name of a tag", "tag", ["key", "biz_tag"]),
    ("the counter of a serial", "counter", ["n"]),
    ("the fingerprint of a key", "fingerprint", ["keyFingerprint", "key_fingerprint"]),
    ("the next number of a tag in this process; in the store", "next, nextInStore", ["position", "nextNumber"]),
    ("numbers that a fetch takes; those of the table", "step, tableStep", ["batchSize"]),
    ("the widths of a layout's fields; their sum", "bits, totalBits", ["widths"]),
    ("the moments at which a layout begins and ends", "epoch, ends", ["begins", "end"]),
    ("IDs a second", "capacityPerSecond", ["idsPerSecond", "ids_per_second"]),
    ("the moment at which an ID was made", "moment", ["made"]),
    ("the store may forget what it acknowledged", "doubt", ["mayForget", "mayForgetBecause", "storeMayForget", "storeDoubt", "may_forget"]),
    ("why something is so", "reason", ["why"]),
    ("what is left of a window, in milliseconds", "windowLeftMs", ["windowMs"]),
    ("how often a machine ID was claimed", "claim", ["leaseEpoch", "lease_epoch"]),
    ("the delay after which a retry makes sense, in milliseconds", "retryAfterMs", ["retry_after_ms"]),
]
# Two things with one name, for a reason.
SEVERAL_TYPES = {
    "serials": "of a tag, new ones; of a program, what is known of all",
    "step": "of a tag, a number; of a run, the distance of its IDs, as text like these",
    "type": "of a problem, as RFC 9457 has it; of an ID, a field",
    "version": "of a program; of an ID, a field",
}


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(it.capitalize() for it in rest)


def without_tests(text):
    text = re.sub(r"\n#\[cfg\((?:all\()?test[^\n]*\n(?:#\[[^\n]*\n)*mod \w+ \{\n.*?\n\}\n", "\n", text, flags=re.S)
    return "\n".join(line for line in text.split("\n") if not line.strip().startswith("//"))


# How a member is written in JSON, by its Rust type.
WRITTEN = {
    "String": "text", "&str": "text", "Cow<str>": "text", "Long": "text", "IdText": "text", "Value": "number",
    "Verbatim": "number", "bool": "truth", "u8": "number", "u16": "number", "u32": "number", "u64": "number", "usize": "number", "f64": "number",
}


def written(rust):
    rust = re.sub(r"'\w+,? ?", "", rust).strip()
    for outer, form in (("Option", "{}"), ("Vec", "list of {}")):
        inner = re.fullmatch(outer + r"<(.*)>", rust)
        if inner:
            return form.format(written(inner.group(1)))
    return WRITTEN.get(rust, "object")


def serialized(text):
    """Members of the structs that are serialised, with their types."""
    for attributes, body in re.findall(r"((?:#\[[^\n]*\n(?:[^#\n][^\n]*\n)*?)+?)(?:pub(?:\([^)]*\))? )?struct \w+(?:<[^>]*>)? \{\n(.*?)\n\}", text, flags=re.S):
        if "Serialize" not in attributes and "Deserialize" not in attributes:
            continue
        # What is only read may be a number where an answer has text.
        is_answer = re.search(r"\bSerialize", attributes)
        about = ""
        for line in body.split("\n"):
            member = re.match(r"    (?:pub(?:\([^)]*\))? )?(\w+): (.*),$", line)
            if member is None:
                about += line
                continue
            renamed = re.search(r'rename = "(\w+)"', about)
            if "flatten" not in about:
                yield renamed.group(1) if renamed else camel(member.group(1)), written(member.group(2)) if is_answer else None
            about = ""


def literal(text):
    """Keys of `json!` objects, and of members that are set by name."""
    for start in [it.end() for it in re.finditer(r"json!\(", text)]:
        depth, at = 1, start
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield from re.findall(r'"(\w+)":', text[start:at])
    yield from re.findall(r'\["(\w+)"\] = ', text)


def columns(text):
    for heads in re.findall(r"Table::new\(\[(.*?)\]\)", text, flags=re.S):
        for head in re.findall(r'"([^"]+)"', heads):
            yield camel(head.replace("IDs/s", "ids per second").replace(" ", "_"))


def found():
    """Doors and types of each name."""
    names = {}

    def note(door, members):
        for name in members:
            names.setdefault(name, (set(), set()))[0].add(door)

    for path in [*sorted((ROOT / "vesta-boot/src").glob("answers/*.rs")), *sorted((ROOT / "vesta-boot/src").glob("*/answers.rs"))]:
        for name, of_type in serialized(without_tests(path.read_text())):
            note("answers", [name])
            names[name][1].update([of_type] if of_type else [])
    for path in sorted((ROOT / "vesta-boot/src/admin").glob("*.rs")):
        note("admin", literal(without_tests(path.read_text())))
    for path in [*sorted((ROOT / "vesta-boot/src/commands").rglob("*.rs")), *sorted((ROOT / "vesta-boot/src").glob("*/command.rs")), *sorted((ROOT / "vesta-cli/src").glob("*.rs"))]:
        if "tests" not in path.parts and path.name not in ("tests.rs", "sql.rs"):
            text = without_tests(path.read_text())
            note("command line", [*literal(text), *columns(text)])
    proto = (ROOT / "vesta-intf/proto/vesta/v1/vesta.proto").read_text()
    # The entries that a pool server keeps for its members are not for people: their key is not the name of a tag.
    proto = proto[: proto.index("service PoolService")]
    fields = re.findall(r"^\s+(?:optional |repeated )?[\w.]+ (\w+) = \d+(?: \[.*\])?;", proto, flags=re.M)
    note("gRPC", map(camel, fields))
    gauges = "".join((ROOT / f"vesta-boot/src/admin/{it}.rs").read_text() for it in ("gauges", "encoder"))
    note("metrics", [camel(it) for it in re.findall(r'\("(\w+)", ', gauges) if it.islower()])
    return names


def page(names):
    groups = {}
    for name, (doors, types) in sorted(names.items(), key=lambda it: (it[0].lower(), it[0])):
        groups.setdefault((", ".join(sorted(doors)), "; ".join(sorted(types))), []).append(name)
    lines = [
        "# Names",
        "",
        "Each thing has one name and one type at every door: in the answers that REST, the admin listener and the command line",
        "give as JSON (`answers` in vesta-boot), in what one command alone says, in the protocol (there in `snake_case`) and as a",
        "label of metrics. `scripts/check/docs/names.py write` makes this page from the sources; a name that is not here fails",
        "the checks, so that it is chosen on purpose. The script has what each thing is not called.",
        "",
        "| doors | type in the answers | names |",
        "|---|---|---|",
        *(f"| {doors} | {types} | {', '.join(f'`{it}`' for it in alike)} |" for (doors, types), alike in sorted(groups.items())),
    ]
    return "\n".join(lines) + "\n"


def faults(names):
    for thing, name, old in ONE:
        for it in old:
            for door in sorted(names.get(it, ((), ()))[0]):
                yield f"{door} calls {thing} `{it}`; its name is {name}"
    for name, (_, types) in sorted(names.items()):
        if len(types) > 1 and name not in SEVERAL_TYPES:
            yield f"`{name}` has several types: {', '.join(sorted(types))}"


def main():
    names = found()
    # Planted: an old name and a second type are seen.
    assert list(faults({"retry_after_ms": ({"answers"}, set())})), "a planted name is not found"
    assert list(faults({"tag": ({"answers"}, {"text", "number"})})), "a planted type is not found"
    wrong = list(faults(names))
    text = page(names)
    if sys.argv[1:] == ["write"]:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        wrong.append("docs/inside/names.md differs from the sources: scripts/check/docs/names.py write, and look at what changed")
    for it in wrong:
        print(f"names: {it}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{len(names)} names, each thing has one")


main()
