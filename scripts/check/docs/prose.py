"""Finds phrases that make a reader stop; scripts/check/prose.sh says how it is called.

A phrase is a hint: read the sentence, and write what an engineer would say. If it is right as it is, the budget has room
for it, and no more."""

import re
import subprocess
import sys
from pathlib import Path

BUDGET = 0  # places
LONGEST = 30  # words of a sentence in README.md and docs/use

PHRASES = {
    # A sentence is about a component, a caller, a process or a store.
    "person": r"\b(?:(?:no|some|any|every)body|whoever|whom)\b",
    "clause": r"(?:^|[.:;] )[Ww](?:ho|hat) (?!is\b|are\b|if\b)[a-z]+ [^?]*$",
    "idiom": r"\b(?:at hand|anew|to and fro|by lot|look(?:s|ed)? away|in the place of)\b",
    "way": r"\bthe (?:short|long|quick) way\b",
    "follow": r"\b(?:go|goes|went|gone|going) by (?!itself|themselves)\b|\b(?:came|become|became) of\b",
    "away": r"\b(?:is|are|be|been) away\b",
    "measure": r"\b(?:of|with|in|after) so many\b|\bso many-th\b|\bby so much\b|\bfor so long\b",
    "told": r"\btells? (?:of|from|whether)\b|\b(?:is|are|be) told\b|\btold (?:of|by|as)\b",
    "absent": r"\b(?:is|are|was) no (?!longer|more|room)[a-z]+ (?:of|for|in|at|to|and|or)\b",
    "own": r"\bof (?:its|their|our) own[.,;:)]",
}
TEST_NAME = re.compile(r"\bfn ((?:who|what|nobody|somebody)_\w+|\w+_anew\w*|\w+_(?:who|nobody|somebody)_\w+)\(")


def prose(path, text):
    """Yields number and text of each line that people read."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if path.suffix == ".md":
            fenced ^= line.startswith("```")
            if not fenced:
                yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)
        elif path.suffix == ".rs":
            if comment := re.search(r"(?:^|\s)//[/!]?\s(.*)", line):
                yield number, re.sub(r"`[^`]*`", "", comment[1])
        elif line.startswith("# "):
            yield number, line[2:]


def long_sentences(text):
    """Yields number and length of each sentence that is too long; a table's cell and an item are sentences."""
    paragraph, start, fenced = "", 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        line = line.strip()
        fence = line.startswith(("```", "<!--"))
        fenced ^= line.startswith("```")
        item = re.match(r"[*-] |\d+\. |\||#", line)
        if not line or fence or fenced or item:
            for sentence in re.split(r"[.!?:;·] |\|", re.sub(r"\]\([^)]*\)|`[^`]*`", "code", paragraph)):
                if len(sentence.split()) > LONGEST:
                    yield start, f"{len(sentence.split())} words: {sentence.strip()[:80]}"
            paragraph = ""
        if line and not fence and not fenced:
            start = start if paragraph else number
            paragraph += " " + line


def places():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    for path in map(Path, listed.rstrip("\0").split("\0")):
        english = "zh-CN" not in str(path) and "generated" not in path.parts
        if path.suffix not in (".md", ".rs", ".sh", ".py") or not english or path.is_symlink() or not path.exists():
            continue
        text = path.read_text("utf-8", errors="replace")
        for number, line in prose(path, text):
            for name, phrase in PHRASES.items():
                if found := re.search(phrase, line):
                    yield f"{path}:{number}: {name}: {found[0].strip()[:40]}"
        if path.suffix == ".rs":
            for number, line in enumerate(text.splitlines(), 1):
                if name := TEST_NAME.search(line):
                    yield f"{path}:{number}: name: {name[1]}"
        if str(path) == "README.md" or path.is_relative_to("docs/use"):
            for number, sentence in long_sentences(text):
                yield f"{path}:{number}: {sentence}"


found = list(places())
if "--list" in sys.argv[1:]:
    print("\n".join(found))
print(f"{len(found)} places, budget {BUDGET}")
if len(found) > BUDGET:
    sys.exit("write them plainly: scripts/check/prose.sh --list")
if len(found) < BUDGET:
    sys.exit("lower BUDGET in scripts/check/docs/prose.py")
