#!/usr/bin/env python3
"""Compares the Chinese guides with their English originals, and follows the links of all documents.

A translation has the headings, tables, lists and code of its original, in the same order; comments in code may
be translated. Links are those of the documents at the top level and in docs/. What differs is printed with its place.
"""

import difflib
import os
import re
import sys
from pathlib import Path

os.chdir(Path(__file__).resolve().parents[2])

# The heading of the original at which its translation ends.
ENDS = {"OPERATIONS": "## Machine IDs: which source?"}
# Translations that leave out rows of tables and the output of commands.
ABRIDGED = {"README"}
COMMENT = {"console": r"(?<!\S)# .*", "sql": r"--\s.*", "text": "(?!)"}


def lines_of(path):
    """Yields (number, line, language): the language is None outside of code, and for the fences themselves."""
    language = None
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        fence = line.lstrip().startswith("```")
        yield number, line, None if fence else language
        if fence:
            language = line.strip().strip("`") if language is None else None


def outline(path, end, abridged):
    """The parts of a document that its translation must have: (number, text)."""
    parts, comment = [], None
    for number, line, language in lines_of(path):
        if line == end:
            return parts
        part = None
        if language == "console" and abridged:
            part = re.sub(COMMENT["console"], "", line) if line.startswith("$ ") else None
        elif language == "console":
            part = line
        elif language is not None:
            part = re.sub(COMMENT.get(language, r"(?<!\S)(//|#) .*|(?<!\S)///? .*"), "", line)
        elif line.lstrip().startswith("```"):
            parts += [comment] if comment else []
            part = line
        elif match := re.match(r"#+(?= )", line):
            part = match[0] + " heading"
        elif line.startswith("|") and not abridged:
            part = f"table row of {len(re.findall(r'(?<!\\)[|]', line)) - 1}"
        elif match := re.match(r"[*-] |\d+\. |    \S.*", line):
            part = match[0]
        comment = (number, line) if line.startswith("<!--") and language is None else None
        if part and part.strip():
            parts.append((number, part.rstrip()))
    if end:
        parts.append((number, f"end at {end!r}, which is missing"))
    return parts


def compare(chinese):
    english = chinese.with_name(chinese.name.replace(".zh-CN", ""))
    name = english.stem
    here, there = outline(chinese, None, name in ABRIDGED), outline(english, ENDS.get(name), name in ABRIDGED)
    for path, other, label in ((chinese, english, "English"), (english, chinese, "中文")):
        if f"[{label}]({other.name})" not in path.read_text("utf-8").splitlines()[:3]:
            yield f"{path}:3: no line [{label}]({other.name})"
    matcher = difflib.SequenceMatcher(None, [p for _, p in here], [p for _, p in there], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            for path, parts, first, last in ((chinese, here, a, b), (english, there, c, d)):
                place = parts[min(first, len(parts) - 1)][0]
                yield f"{path}:{place}: only here: {[p for _, p in parts[first:last]]}"


def anchors(path):
    found = set()
    for _, line, language in lines_of(path):
        found |= set(re.findall(r'<a (?:id|name)="([^"]+)"', line))
        if language is None and (match := re.match(r"#+ +(.*?)(?: +#+)? *$", line)):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found.add(next(s for n in range(99) if (s := slug + (f"-{n}" if n else "")) not in found))
    return found


def broken(path):
    for number, line, language in lines_of(path):
        for target in re.findall(r"\]\(<?([^)\s>]+)", re.sub(r"`[^`]*`", "", line)) if language is None else ():
            file, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            aim = path.parent / file if file else path
            if not aim.exists():
                yield f"{path}:{number}: {target}: no such file"
            elif anchor and aim.suffix == ".md" and anchor not in anchors(aim):
                yield f"{path}:{number}: {target}: no such heading"


documents = sorted([*Path().glob("*.md"), *Path("docs").glob("*.md")])
translations = [path for path in documents if path.name.endswith(".zh-CN.md")]
wrong = [w for path in translations for w in compare(path)] + [w for path in documents for w in broken(path)]
print(*wrong, sep="\n") if wrong else print(f"{len(translations)} translations, {len(documents)} documents: as they should be")
sys.exit(bool(wrong))
