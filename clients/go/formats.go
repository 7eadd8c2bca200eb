package vesta

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	allDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U" // the last five are check symbols only
	// The quasigroup of order 10 of H. Michael Damm's dissertation, row by row.
	dammTable = "0317598642709215486342068713591750983426612304597836742095815869720134894536201794386172052581436790"
)

// A text format that needs neither a layout nor a key.
type format struct {
	name        string
	symbols     string
	radix       uint64
	least, most int // lengths without check symbols
	check       func(id uint64) string
}

var formats = []format{
	{"decimal", allDigits, 10, 1, 20, none},
	{"padded-decimal", allDigits, 10, 20, 20, none},
	{"hex", allDigits, 16, 16, 16, none},
	{"base36", allDigits, 36, 13, 13, none},
	{"base62", allDigits, 62, 11, 11, none},
	{"crockford", crockford, 32, 13, 13, none},
	{"crockford-check", crockford, 32, 13, 13, func(id uint64) string { return crockford[id%37:][:1] }},
	{"decimal-damm", allDigits, 10, 1, 20, damm},
	{"decimal-mod97", allDigits, 10, 1, 20, func(id uint64) string { return fmt.Sprintf("%02d", 98-id%97*100%97) }},
	{"decimal-luhn", allDigits, 10, 1, 20, luhn},
	{"uuid", allDigits, 16, 36, 36, none},
}

var (
	uuidDigits = regexp.MustCompile(`(.{8})(.{4})(.{3})(.)`)
	uuidShape  = regexp.MustCompile(`^(.{8})-(.{4})-8(.{3})-8(.)00-007665737461$`)
)

func none(uint64) string { return "" }

func damm(id uint64) string {
	state := byte('0')
	for _, digit := range []byte(strconv.FormatUint(id, 10)) {
		state = dammTable[10*(state-'0')+digit-'0']
	}
	return string(rune(state))
}

func luhn(id uint64) string {
	sum := uint64(0)
	for ; id > 0; id /= 100 {
		sum += id%10*2/10 + id%10*2%10 + id/10%10
	}
	return strconv.FormatUint((10-sum%10)%10, 10)
}

// The value of a symbol; letters in either case, unless both are digits. At least the radix if it has none.
func (f format) value(symbol rune) uint64 {
	if f.radix < 62 && symbol >= 'a' && symbol <= 'z' {
		symbol -= 'a' - 'A'
	}
	if f.symbols == crockford {
		if meant, found := map[rune]rune{'I': '1', 'L': '1', 'O': '0'}[symbol]; found {
			symbol = meant
		}
	}
	return uint64(strings.IndexRune(f.symbols, symbol))
}

func find(name string) (format, error) {
	names := make([]string, len(formats))
	for i, it := range formats {
		if names[i] = it.name; it.name == name {
			return it, nil
		}
	}
	return format{}, fmt.Errorf("the format must be one of %s", strings.Join(names, ", "))
}

// Encode returns the text of an ID in the named format, such as base62. An error means an unknown format.
func Encode(id uint64, format string) (string, error) {
	it, err := find(format)
	if err != nil {
		return "", err
	}
	if format == "uuid" {
		return uuidDigits.ReplaceAllString(fmt.Sprintf("%016x", id), "$1-$2-8$3-8${4}00-007665737461"), nil
	}
	if format == "hex" {
		return fmt.Sprintf("%016x", id), nil
	}
	text := ""
	for rest := id; rest > 0; rest /= it.radix {
		text = it.symbols[rest%it.radix:][:1] + text
	}
	return strings.Repeat("0", max(it.least-len(text), 0)) + text + it.check(id), nil
}

// Decode returns the ID of a text. Any other text is an error: nothing is trimmed, cut off or corrected.
func Decode(text, format string) (uint64, error) {
	it, err := find(format)
	if err != nil {
		return 0, err
	}
	symbols, count := []rune(text), len(it.check(0))
	least, most, end := it.least+count, it.most+count, len(symbols)-count
	if len(symbols) < least || len(symbols) > most {
		lengths := strconv.Itoa(most)
		if least < most {
			lengths = fmt.Sprintf("%d to %d", least, most)
		}
		return 0, fmt.Errorf("%s takes %s characters, not %d", format, lengths, len(symbols))
	}
	if format == "uuid" {
		parts := uuidShape.FindStringSubmatch(text)
		if parts == nil {
			return 0, fmt.Errorf("this UUID is not that of an ID: those are iiiiiiii-iiii-8iii-8i00-007665737461")
		}
		return Decode(strings.Join(parts[1:], ""), "hex")
	}
	id, above := uint64(0), false
	for at, symbol := range symbols[:end] {
		value := it.value(symbol)
		if value >= it.radix {
			return 0, fmt.Errorf("character %d is not a digit of %s", at+1, format)
		}
		above = above || id > (math.MaxUint64-value)/it.radix
		id = id*it.radix + value
	}
	if above {
		return 0, fmt.Errorf("the text is above %d, the largest number of 64 bits", uint64(math.MaxUint64))
	}
	for at, symbol := range it.check(id) {
		if it.value(symbol) != it.value(symbols[end+at]) {
			return 0, fmt.Errorf("the check symbol of %s is wrong: a character was mistyped, swapped, lost or added", format)
		}
	}
	return id, nil
}
