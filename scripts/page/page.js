// ---- which page, which language ----

function zones() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const names = new Set([own, "Asia/Shanghai", "UTC", "America/New_York", "Europe/Berlin"]);
  $("zone").replaceChildren(...[...names].map((name) => new Option(name)));
  if (own === "UTC") $("zone").value = "Asia/Shanghai"; // a second one
}
function layouts() {
  const had = $("chosen").value;
  const options = ask("layouts").map(([name, about]) => Object.assign(new Option(name), { title: about }));
  $("chosen").replaceChildren(new Option(t("guess"), ""), ...options);
  $("chosen").value = had;
}
function translate() {
  stored.language = language;
  document.documentElement.lang = locale();
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label));
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
  zones();
  $("curl").textContent = `curl ${new URL("genid", location.href.split("#")[0])}`;
  $("epoch").value = `${new Date().getUTCFullYear()}-01-01`;
  $("language").value = language;
  $("language").addEventListener("input", (event) => { language = event.target.value; translate(); });
  for (const id of ["text", "made", "chosen", "zone"]) $(id).addEventListener("input", showId);
  $("example").addEventListener("click", () => { $("text").value = "2407837855670862845"; showId(); });
  $("new").addEventListener("click", newId);
  for (const id of ["b-time", "b-seq", "b-machine", "unit", "epoch"]) $(id).addEventListener("input", () => showLayout());
  $("needs").addEventListener("submit", (event) => { event.preventDefault(); showDesign(); });
  $("copy-toml").addEventListener("click", (event) => copy($("toml").textContent, event.target));
  $("access").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value; $("token").value = ""; poll(); });
  addEventListener("hashchange", show);
  document.addEventListener("visibilitychange", () => poll());
  translate();
}
load().then(start);
