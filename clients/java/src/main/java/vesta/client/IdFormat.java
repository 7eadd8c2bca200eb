package vesta.client;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongFunction;
import java.util.regex.Pattern;

/** IDs as text, in the formats that need neither a layout nor a key: {@code decimal}, {@code padded-decimal}, {@code hex},
 * {@code base36}, {@code base62}, {@code crockford}, {@code crockford-check}, {@code decimal-damm}, {@code decimal-mod97},
 * {@code decimal-luhn} and {@code uuid}. IDs are unsigned. */
public final class IdFormat {
    private static final String ALL = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    /** The last five are check symbols only. */
    private static final String CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";
    /** The quasigroup of order 10 of H. Michael Damm's dissertation, row by row. */
    private static final String DAMM = "0317598642709215486342068713591750983426612304597836742095815869720134894536201794386172052581436790";
    private static final Pattern UUID = Pattern.compile("(.{8})-(.{4})-8(.{3})-8(.)00-007665737461");
    private static final Map<String, IdFormat> FORMATS = new LinkedHashMap<>();

    static {
        add("decimal", ALL, 10, 1, 20, id -> "");
        add("padded-decimal", ALL, 10, 20, 20, id -> "");
        add("hex", ALL, 16, 16, 16, id -> "");
        add("base36", ALL, 36, 13, 13, id -> "");
        add("base62", ALL, 62, 11, 11, id -> "");
        add("crockford", CROCKFORD, 32, 13, 13, id -> "");
        add("crockford-check", CROCKFORD, 32, 13, 13, id -> "" + CROCKFORD.charAt((int) Long.remainderUnsigned(id, 37)));
        add("decimal-damm", ALL, 10, 1, 20, IdFormat::damm);
        add("decimal-mod97", ALL, 10, 1, 20, id -> String.format("%02d", 98 - Long.remainderUnsigned(id, 97) * 100 % 97));
        add("decimal-luhn", ALL, 10, 1, 20, IdFormat::luhn);
        add("uuid", ALL, 16, 36, 36, id -> "");
    }

    private final String symbols;
    private final int radix, least, most; // lengths without check symbols
    private final LongFunction<String> check;

    private IdFormat(String symbols, int radix, int least, int most, LongFunction<String> check) {
        this.symbols = symbols;
        this.radix = radix;
        this.least = least;
        this.most = most;
        this.check = check;
    }

    private static void add(String name, String symbols, int radix, int least, int most, LongFunction<String> check) {
        FORMATS.put(name, new IdFormat(symbols, radix, least, most, check));
    }

    /** The text of an ID. */
    public static String encode(long id, String format) {
        IdFormat it = find(format);
        if (format.equals("uuid")) {
            return encode(id, "hex").replaceFirst("(.{8})(.{4})(.{3})(.)", "$1-$2-8$3-8$400-007665737461");
        }
        var text = new StringBuilder();
        for (long rest = id; rest != 0 || text.length() < it.least; rest = Long.divideUnsigned(rest, it.radix)) {
            text.append(it.symbols.charAt((int) Long.remainderUnsigned(rest, it.radix)));
        }
        String digits = text.reverse().toString();
        return (format.equals("hex") ? digits.toLowerCase(Locale.ROOT) : digits) + it.check.apply(id);
    }

    /** The ID of a text. Any other text is an {@link IllegalArgumentException}: nothing is trimmed, cut off or corrected. */
    public static long decode(String text, String format) {
        IdFormat it = find(format);
        int count = it.check.apply(0).length(), length = text.codePointCount(0, text.length()), end = text.length() - count;
        if (length < it.least + count || length > it.most + count) {
            String lengths = (it.least == it.most ? "" : it.least + count + " to ") + (it.most + count);
            throw new IllegalArgumentException(format + " takes " + lengths + " characters, not " + length);
        }
        if (format.equals("uuid")) {
            var parts = UUID.matcher(text);
            if (!parts.matches()) {
                throw new IllegalArgumentException("this UUID is not that of an ID: those are iiiiiiii-iiii-8iii-8i00-007665737461");
            }
            return decode(parts.group(1) + parts.group(2) + parts.group(3) + parts.group(4), "hex");
        }
        long id = 0;
        boolean above = false;
        for (int at = 0; at < end; at++) {
            int value = it.value(text.charAt(at));
            if (value < 0 || value >= it.radix) {
                throw new IllegalArgumentException("character " + (at + 1) + " is not a digit of " + format);
            }
            above |= Long.compareUnsigned(id, Long.divideUnsigned(-1 - value, it.radix)) > 0;
            id = id * it.radix + value;
        }
        if (above) {
            throw new IllegalArgumentException("the text is above 18446744073709551615, the largest number of 64 bits");
        }
        String right = it.check.apply(id);
        for (int at = 0; at < count; at++) {
            if (it.value(right.charAt(at)) != it.value(text.charAt(end + at))) {
                throw new IllegalArgumentException("the check symbol of " + format + " is wrong: a character was mistyped, swapped, lost or added");
            }
        }
        return id;
    }

    private static IdFormat find(String name) {
        IdFormat found = FORMATS.get(name);
        if (found == null) {
            throw new IllegalArgumentException("the format must be one of " + String.join(", ", FORMATS.keySet()));
        }
        return found;
    }

    /** The value of a symbol, or -1; letters in either case, unless both are digits. */
    private int value(char symbol) {
        int upper = radix < 62 && symbol >= 'a' && symbol <= 'z' ? symbol - 'a' + 'A' : symbol;
        boolean folds = symbols.equals(CROCKFORD);
        return symbols.indexOf(folds && (upper == 'I' || upper == 'L') ? '1' : folds && upper == 'O' ? '0' : upper);
    }

    private static String damm(long id) {
        char state = '0';
        for (char digit : Long.toUnsignedString(id).toCharArray()) {
            state = DAMM.charAt(10 * (state - '0') + digit - '0');
        }
        return "" + state;
    }

    private static String luhn(long id) {
        long sum = 0;
        for (long rest = id; rest != 0; rest = Long.divideUnsigned(rest, 100)) {
            long last = 2 * Long.remainderUnsigned(rest, 10);
            sum += last / 10 + last % 10 + Long.remainderUnsigned(Long.divideUnsigned(rest, 10), 10);
        }
        return "" + (10 - sum % 10) % 10;
    }
}
