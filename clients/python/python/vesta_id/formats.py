"""IDs as text, in the formats that need neither a layout nor a key. Needs only the standard library.

    from vesta_id import decode, encode

    assert decode(encode(1285482222412933127, "base62"), "base62") == 1285482222412933127
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple

__all__ = ["decode", "encode"]

MAX_ID = 2**64 - 1
ALL = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U"  # the last five are check symbols only
# The quasigroup of order 10 of H. Michael Damm's dissertation, row by row.
DAMM = "0317598642709215486342068713591750983426612304597836742095815869720134894536201794386172052581436790"


def _damm(id: int) -> str:
    state = "0"
    for digit in str(id):
        state = DAMM[int(state + digit)]
    return state


def _luhn(id: int) -> str:
    digits = str(id)[::-1]
    return str(-sum(map(int, digits[1::2] + "".join("0246813579"[int(digit)] for digit in digits[::2]))) % 10)


class _Format(NamedTuple):
    symbols: str
    radix: int
    least: int  # length of the shortest text without check symbols
    most: int
    check: Callable[[int], str] = lambda _: ""

    def value(self, symbol: str) -> int:
        """Letters in either case, unless both are digits."""
        upper = symbol.upper() if self.radix < 62 and "a" <= symbol <= "z" else symbol
        return self.symbols.find({"I": "1", "L": "1", "O": "0"}.get(upper, upper) if self.symbols is CROCKFORD else upper)


_FORMATS = {
    "decimal": _Format(ALL, 10, 1, 20),
    "padded-decimal": _Format(ALL, 10, 20, 20),
    "hex": _Format(ALL, 16, 16, 16),
    "base36": _Format(ALL, 36, 13, 13),
    "base62": _Format(ALL, 62, 11, 11),
    "crockford": _Format(CROCKFORD, 32, 13, 13),
    "crockford-check": _Format(CROCKFORD, 32, 13, 13, lambda id: CROCKFORD[id % 37]),
    "decimal-damm": _Format(ALL, 10, 1, 20, _damm),
    "decimal-mod97": _Format(ALL, 10, 1, 20, lambda id: f"{98 - id * 100 % 97:02}"),
    "decimal-luhn": _Format(ALL, 10, 1, 20, _luhn),
    "uuid": _Format(ALL, 16, 36, 36),
}


def _find(format: str) -> _Format:
    if format not in _FORMATS:
        raise ValueError(f"the format must be one of {', '.join(_FORMATS)}")
    return _FORMATS[format]


def encode(id: int, format: str) -> str:
    """The text of an ID."""
    it = _find(format)
    if not 0 <= id <= MAX_ID:
        raise ValueError(f"an ID must be 0 to {MAX_ID}, but is {id}")
    if format == "uuid":
        return re.sub("(.{8})(.{4})(.{3})(.)", r"\1-\2-8\3-8\g<4>00-007665737461", encode(id, "hex"))
    text, rest = "", id
    while rest:
        rest, digit = divmod(rest, it.radix)
        text = it.symbols[digit] + text
    return (text.lower() if format == "hex" else text).rjust(it.least, "0") + it.check(id)


def decode(text: str, format: str) -> int:
    """The ID of a text. Any other text is a `ValueError`: nothing is trimmed, cut off or corrected."""
    it = _find(format)
    count = len(it.check(0))
    if not it.least <= len(text) - count <= it.most:
        lengths = f"{it.least + count} to {it.most + count}" if it.least < it.most else it.most + count
        raise ValueError(f"{format} takes {lengths} characters, not {len(text)}")
    if format == "uuid":
        parts = re.fullmatch("(.{8})-(.{4})-8(.{3})-8(.)00-007665737461", text)
        if not parts:
            raise ValueError("this UUID is not that of an ID: those are iiiiiiii-iiii-8iii-8i00-007665737461")
        return decode("".join(parts.groups()), "hex")
    id, end = 0, len(text) - count
    for at, symbol in enumerate(text[:end]):
        value = it.value(symbol)
        if not 0 <= value < it.radix:
            raise ValueError(f"character {at + 1} is not a digit of {format}")
        id = id * it.radix + value
    if id > MAX_ID:
        raise ValueError(f"the text is above {MAX_ID}, the largest number of 64 bits")
    if [*map(it.value, text[end:])] != [*map(it.value, it.check(id))]:
        raise ValueError(f"the check symbol of {format} is wrong: a character was mistyped, swapped, lost or added")
    return id
