package vesta.client;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A reader of JSON (RFC 8259), strict: no comment, no comma too many, no name twice. Objects become maps, arrays lists,
 * numbers {@link BigDecimal}. */
final class Json {
    private static final int DEEPEST = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The object of a text. */
    static Map<?, ?> object(String text) {
        var json = new Json(text);
        Object value = json.value(0);
        json.blanks();
        if (json.at < text.length() || !(value instanceof Map)) {
            throw json.wrong();
        }
        return (Map<?, ?>) value;
    }

    /** A member that must be there, of this class. */
    static <T> T member(Map<?, ?> object, String name, Class<T> kind) {
        Object value = object.get(name);
        if (!kind.isInstance(value)) {
            throw new IllegalArgumentException("the member " + name + " is missing, or has another type");
        }
        return kind.cast(value);
    }

    static long number(Map<?, ?> object, String name) {
        return member(object, name, BigDecimal.class).longValueExact();
    }

    private Object value(int depth) {
        blanks();
        char c = peek();
        if (depth > DEEPEST) {
            throw wrong();
        }
        switch (c) {
            case '{':
                return object(depth);
            case '[':
                return list(depth);
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) {
        var members = new LinkedHashMap<String, Object>();
        at++;
        for (boolean more = !ends('}'); more; more = goesOn('}')) {
            blanks();
            String name = string();
            blanks();
            take(':');
            Object value = value(depth + 1);
            if (members.containsKey(name)) {
                throw wrong();
            }
            members.put(name, value);
        }
        return members;
    }

    private List<Object> list(int depth) {
        var items = new ArrayList<Object>();
        at++;
        for (boolean more = !ends(']'); more; more = goesOn(']')) {
            items.add(value(depth + 1));
        }
        return items;
    }

    private boolean ends(char end) {
        blanks();
        if (peek() != end) {
            return false;
        }
        at++;
        return true;
    }

    private boolean goesOn(char end) {
        if (ends(end)) {
            return false;
        }
        take(',');
        return true;
    }

    private String string() {
        take('"');
        var read = new StringBuilder();
        for (char c; (c = next()) != '"'; ) {
            if (c < ' ') {
                throw wrong();
            }
            read.append(c == '\\' ? escaped() : c);
        }
        return read.toString();
    }

    private char escaped() {
        char c = next();
        int plain = "\"\\/bfnrt".indexOf(c);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        int code = 0;
        for (int i = 0; i < 4 && c == 'u'; i++) {
            int digit = Character.digit(next(), 16);
            if (digit < 0) {
                throw wrong();
            }
            code = 16 * code + digit;
        }
        if (c != 'u') {
            throw wrong();
        }
        return (char) code;
    }

    private BigDecimal number() {
        int start = at;
        skip('-');
        if (!skip('0')) {
            digits();
        }
        if (skip('.')) {
            digits();
        }
        if (skip('e') || skip('E')) {
            if (!skip('-')) {
                skip('+');
            }
            digits();
        }
        return new BigDecimal(text.substring(start, at));
    }

    private void digits() {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        if (at == start) {
            throw wrong();
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    private void blanks() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private boolean skip(char c) {
        boolean found = peek() == c;
        at += found ? 1 : 0;
        return found;
    }

    private void take(char c) {
        if (!skip(c)) {
            throw wrong();
        }
    }

    /** The next character, or NUL at the end: no JSON has one outside of strings. */
    private char peek() {
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private char next() {
        char c = peek();
        if (at++ >= text.length()) {
            throw wrong();
        }
        return c;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("not the expected JSON, at character " + at);
    }
}
