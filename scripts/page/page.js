// ---- which page, which language ----

function translate() {
  stored.language = language;
  document.documentElement.lang = locale();
  words();
  layouts();
  show();
}
function show() {
  const [page, text] = location.hash.slice(1).split("/");
  const shown = ["id", "layout", "console"].includes(page) ? page : "id";
  for (const section of document.querySelectorAll("section")) section.hidden = section.id !== `page-${shown}`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `Vesta: ${t(shown)}`;
  if (shown === "id") {
    if (text !== undefined) $("text").value = decodeURIComponent(text);
    showId();
  }
  if (shown === "layout") showLayout();
  if (shown === "console") poll();
}

function start() {
  startId();
  startLayout();
  $("curl").textContent = `curl ${new URL("genid", location.href.split("#")[0])}`;
  $("language").value = language;
  $("language").addEventListener("input", (event) => { language = event.target.value; translate(); });
  $("new").addEventListener("click", newId);
  $("access").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value; $("token").value = ""; poll(); });
  addEventListener("hashchange", show);
  document.addEventListener("visibilitychange", () => poll());
  translate();
}
load().then(start);
