// The explainer and the designer of scripts/page, inside the front page of a book.
language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
root.addEventListener("keydown", (event) => event.stopPropagation()); // the book's shortcuts: s searches
load().then(() => {
  startId();
  startLayout();
  words();
  layouts();
  const [, text] = location.hash.split("#id/");
  if (text) $("text").value = decodeURIComponent(text);
  if (text) showId();
  showLayout();
});
