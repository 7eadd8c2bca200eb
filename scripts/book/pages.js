// What the pages of a book do beyond mdbook; book.css says how it looks.
"use strict";
{
  // Long names in tables may break after these characters, in a wide window. A table that is still wider than its page
  // is folded: a row becomes a block, each cell with the name of its column.
  const tables = [...document.querySelectorAll("main table")];
  for (const { tHead, tBodies } of tables) {
    for (const cell of tBodies[0].querySelectorAll("td")) cell.dataset.name = tHead.rows[0].cells[cell.cellIndex].textContent;
    for (const code of tBodies[0].querySelectorAll("code")) {
      const [first, ...more] = code.textContent.split(/(?<=[_/,:=?&])/);
      code.replaceChildren(first, ...more.flatMap((part) => [document.createElement("wbr"), part]));
    }
  }
  const fit = () => {
    for (const table of tables) {
      table.classList.remove("fold");
      const { scrollWidth, clientWidth } = table.parentElement;
      table.classList.toggle("fold", scrollWidth > clientWidth);
    }
  };
  addEventListener("resize", fit);
  document.fonts.ready.then(fit);

  // Of a session in a terminal, its commands are copied.
  const text = playground_text;
  playground_text = (pre, ...more) => {
    const shown = text(pre, ...more);
    const session = pre.querySelector("code.language-console");
    return session ? shown.match(/(?<=^\$ )(?:.*\\\n)*.*/gm).join("\n") : shown;
  };
}
