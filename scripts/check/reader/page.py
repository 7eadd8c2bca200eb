"""A page as its reader sees it: code blocks in order, each with the prose before it."""

import re
from dataclasses import dataclass, field

FENCE = re.compile(r"(\s*)```(.*)$")
COMMENT = re.compile(r"\s*<!-- (run|not run): (.*) -->$")
# Reasons to leave a block out: its time, or another script that tries it.
REASON = re.compile(r"\btakes (a|ten|an)? ?(minute|hour)s?\b|\bscripts/[\w/]+\.sh\b")


class Wrong(Exception):
    """What differs, for people."""


class Lacking(Exception):
    """What this machine does not have."""


@dataclass
class Block:
    number: int  # of its first line
    language: str
    lines: list
    before: str  # the paragraph above it
    page: str  # all prose above it
    left_out: str = ""  # why it is not run

    @property
    def is_typed_as_text(self):
        """A command that is shown, but that no checker types."""
        return self.language == "text" and any(line.startswith("$ ") for line in self.lines)

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


@dataclass
class Page:
    blocks: list = field(default_factory=list)
    needs: str = ""  # services that its reader has, as the page says


def read(text):
    """The blocks and the declared services of a page."""
    page, block, indent = Page(), None, 0
    prose, paragraph, left_out, needing = [], [], "", False
    for number, line in enumerate(text.splitlines(), 1):
        fence, comment = FENCE.match(line), COMMENT.match(line)
        if block and fence:
            page.blocks.append(block)
            block, paragraph = None, []
        elif block:
            block.lines.append(line[indent:])
        elif fence:
            language = fence[2].split(",")[0]
            block = Block(number, language, [], " ".join(paragraph), "\n".join(prose), left_out)
            indent, left_out = len(fence[1]), ""
        elif comment and comment[1] == "run":
            raise Wrong(f"line {number}: its reader does not see this command: {comment[2]}")
        elif comment and not REASON.search(comment[2]):
            raise Wrong(f"line {number}: this is no reason: {comment[2]}")
        elif comment:
            left_out = comment[2]
        else:
            # A paragraph stays the one above a block over the blank line between them.
            if line.strip() and prose and not prose[-1].strip():
                paragraph = []
            needing = bool(line.strip()) and (needing or line.lstrip(" *").startswith("You need"))
            page.needs += line.strip() + " " if needing else ""
            prose.append(line)
            paragraph += [line.strip()] if line.strip() else []
    if left_out:
        raise Wrong(f"no block follows: {left_out}")
    return page
