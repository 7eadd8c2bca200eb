// Search of the Chinese book. Chinese has no blanks between words, so that the index of words finds none: this looks
// through the texts instead. Blanks don't count: 机器ID finds 机器 ID.
"use strict";
elasticlunr.Index.load = ({ documentStore }) => ({
  search(text) {
    const letters = (word) => [...word].map((letter) => letter.replace(/[.*+?^${}()|[\]\\]/, "\\$&"));
    const words = text.split(/\s+/).map((word) => new RegExp(letters(word).join("\\s*"), "gi"));
    const hits = (word, text) => text.match(word)?.length ?? 0;
    const found = Object.values(documentStore.docs).map((doc) => {
      const scores = words.map((word) => 10 * hits(word, doc.title) + hits(word, doc.breadcrumbs) + hits(word, doc.body));
      return { ref: doc.id, doc: excerpt(doc, words), score: Math.min(...scores) && scores.reduce((a, b) => a + b) };
    });
    return found.filter((it) => it.score).sort((a, b) => b.score - a.score);
  },
});
// The text around the first word; each word stands alone, so that it is shown as found.
function excerpt(doc, words) {
  const from = Math.max(0, doc.body.search(words[0]) - 30);
  const apart = (body, word) => body.replace(word, (it) => ` ${it.replace(/\s+/g, "")} `);
  const body = words.reduce(apart, doc.body.slice(from, from + 90));
  return { ...doc, body: `${from ? "…" : ""}${body}…` };
}
