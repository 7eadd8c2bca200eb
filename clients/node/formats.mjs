// IDs as text, in the formats that need neither a layout nor a key.

const MAX_ID = 2n ** 64n - 1n;
// The quasigroup of order 10 of H. Michael Damm's dissertation, row by row.
const DAMM = "0317598642709215486342068713591750983426612304597836742095815869720134894536201794386172052581436790";

const damm = (id) => [...String(id)].reduce((state, digit) => DAMM[10 * state + Number(digit)], 0);
const luhn = (id) => {
  const sum = [...String(id)].reverse().reduce((sum, digit, place) => sum + Number(place % 2 ? digit : "0246813579"[digit]), 0);
  return String((10 - (sum % 10)) % 10);
};

const ALL = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U"; // the last five are check symbols only
// Symbols, radix, length of the shortest and the longest text without check symbols, check symbols of an ID.
const FORMATS = new Map(Object.entries({
  "decimal": [ALL, 10n, 1, 20],
  "padded-decimal": [ALL, 10n, 20, 20],
  "hex": [ALL, 16n, 16, 16],
  "base36": [ALL, 36n, 13, 13],
  "base62": [ALL, 62n, 11, 11],
  "crockford": [CROCKFORD, 32n, 13, 13],
  "crockford-check": [CROCKFORD, 32n, 13, 13, (id) => CROCKFORD[id % 37n]],
  "decimal-damm": [ALL, 10n, 1, 20, damm],
  "decimal-mod97": [ALL, 10n, 1, 20, (id) => String(98n - ((id * 100n) % 97n)).padStart(2, "0")],
  "decimal-luhn": [ALL, 10n, 1, 20, luhn],
  "uuid": [ALL, 16n, 36, 36],
}));

function find(format) {
  const found = FORMATS.get(format);
  if (!found) throw new RangeError(`the format must be one of ${[...FORMATS.keys()].join(", ")}`);
  return found;
}

/** The text of an ID. */
export function encode(id, format) {
  const [symbols, radix, least, , check = () => ""] = find(format);
  if (typeof id !== "bigint" || id < 0n || id > MAX_ID) throw new RangeError(`an ID must be a BigInt of 0 to ${MAX_ID}, but is ${String(id)}`);
  if (format === "uuid") return encode(id, "hex").replace(/(.{8})(.{4})(.{3})(.)/, "$1-$2-8$3-8$400-007665737461");
  let text = "";
  for (let rest = id; rest > 0n; rest /= radix) text = symbols[rest % radix] + text;
  return (format === "hex" ? text.toLowerCase() : text).padStart(least, "0") + check(id);
}

/** The ID of a text. Any other text is refused: nothing is trimmed, cut off or corrected. */
export function decode(text, format) {
  const [symbols, radix, least, most, check = () => ""] = find(format);
  const given = [...text], count = check(0n).length;
  if (given.length < least + count || given.length > most + count) {
    const lengths = least === most ? most + count : `${least + count} to ${most + count}`;
    throw new RangeError(`${format} takes ${lengths} characters, not ${given.length}`);
  }
  if (format === "uuid") {
    const parts = /^(.{8})-(.{4})-8(.{3})-8(.)00-007665737461$/.exec(text);
    if (!parts) throw new RangeError("this UUID is not that of an ID: those are iiiiiiii-iiii-8iii-8i00-007665737461");
    return decode(parts.slice(1).join(""), "hex");
  }
  let id = 0n;
  for (const [at, symbol] of given.slice(0, given.length - count).entries()) {
    const value = valueOf(symbol, symbols, radix);
    if (value < 0n || value >= radix) throw new RangeError(`character ${at + 1} is not a digit of ${format}`);
    id = id * radix + value;
  }
  if (id > MAX_ID) throw new RangeError(`the text is above ${MAX_ID}, the largest number of 64 bits`);
  if ([...check(id)].some((symbol, at) => valueOf(symbol, symbols, radix) !== valueOf(given.at(at - count), symbols, radix))) {
    throw new RangeError(`the check symbol of ${format} is wrong: a character was mistyped, swapped, lost or added`);
  }
  return id;
}

/** The value of a symbol; letters in either case, unless both are digits. */
function valueOf(symbol, symbols, radix) {
  const upper = radix < 62n ? symbol.replace(/[a-z]/, (it) => it.toUpperCase()) : symbol;
  const same = symbols === CROCKFORD ? { I: "1", L: "1", O: "0" } : {};
  return BigInt(symbols.indexOf(same[upper] ?? upper));
}
