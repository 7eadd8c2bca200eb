// ---- an ID ----

const locale = () => (language === "zh" ? "zh-CN" : "en-GB");
const utc = (ms) => new Date(ms).toISOString();
const day = (ms) => { try { return utc(ms).slice(0, 10); } catch { return "–"; } }; // beyond what dates reach
function local(ms) {
  const format = { timeZone: $("zone").value, dateStyle: "medium", timeStyle: "long" };
  return new Intl.DateTimeFormat(locale(), format).format(ms);
}
function relative(ms) {
  const seconds = (ms - Date.now()) / 1000;
  const units = [["year", 31556952], ["month", 2629746], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return new Intl.RelativeTimeFormat(language).format(Math.trunc(seconds / length), unit);
}

// The first and last moment of a year, a month or a day.
function period(text) {
  const parts = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (!parts) return null;
  const [year, month, date] = parts.slice(1).map((part) => part && Number(part));
  const from = Date.UTC(year, (month ?? 1) - 1, date ?? 1);
  const until = date ? from + 86400000 : month ? Date.UTC(year, month, 1) : Date.UTC(year + 1, 0, 1);
  const exists = utc(from).startsWith(text);
  return exists ? [from, until - 1] : null;
}

function form(name, text) {
  const button = el("button", { type: "button", text: t("copy"), "aria-label": `${t("copy")}: ${name}` });
  button.addEventListener("click", () => copy(text, button));
  return [name, el("span", { class: "mono", text }), button];
}

function showId() {
  const text = $("text").value.trim();
  for (const id of ["id-error", "kind", "made-error"]) $(id).textContent = "";
  $("explained").hidden = true;
  $("start")?.toggleAttribute("hidden", Boolean(text));
  const hash = text ? `#id/${encodeURIComponent(text)}` : "#id";
  if (location.hash !== hash) history.replaceState(null, "", hash); // browsers limit how often
  if (!text) return;
  const made = $("made").value.trim();
  const when = made ? period(made) : ["", ""];
  if (!when) $("made-error").textContent = t("badMade");
  const it = ask("explain", text, $("chosen").value, Date.now(), ...(when ?? ["", ""]));
  if (it.error) {
    $("id-error").textContent = said(it.error);
    return;
  }
  if (it.kind) {
    const moment = it.moment === null ? "" : ` ${t("madeAt")} ${utc(it.moment)}`;
    $("kind").textContent = `${it.kind}: ${t("notVesta")}${moment}`;
    return;
  }
  $("explained").hidden = false;
  verdict(it);
  chips(it);
  bits(it);
  const js = String(Number(it.id));
  const facts = [
    [t("made"), `${utc(it.moment)} · ${local(it.moment)} · ${relative(it.moment)}`],
    [t("ends"), day(it.ends)],
    ["JavaScript", t(js === it.id ? "jsExact" : "jsRounds", { js })],
  ];
  $("made-at").replaceChildren(...facts.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", {}, ...unbroken(text))]));
  fill("fields", it.fields.map((field) => {
    const head = el("span", {}, el("span", { class: `swatch ${field.name}` }), field.name);
    const places = field.bits > 1 ? `${field.at + field.bits - 1}–${field.at}` : `${field.at}`;
    return [head, places, methodName(field) + field.value, field.max];
  }));
  const forms = [...it.forms, [t("signed"), it.signed]];
  if (it.tick) forms.push(["SQL", `id BETWEEN ${it.tick[0]} AND ${it.tick[1]}`]);
  fill("forms", forms.map(([name, text]) => form(name, text)));
}
const methodName = (field) => {
  const name = field.name === "genMethod" && ["embed", "central", "rest", "database"][field.value];
  return name ? `${t(name)}: ` : "";
};
function verdict(it) {
  const first = it.unknown ? undefined : it.guesses[0];
  const known = $("chosen").value !== "";
  const sure = known || first?.probability >= 0.995;
  const wanted = !sure && !$("made").value.trim();
  const read = { layout: it.layout, moment: utc(it.moment) };
  const parts = [known || first ? t(known ? "isA" : sure ? "isLikely" : "mayBe", read) : t("fitsNone")];
  if (first && !sure) parts.push(t("notCertain"));
  if (it.guesses.length && wanted) parts.push(t("monthDecides"));
  $("verdict").replaceChildren(...unbroken(parts.join(language === "zh" ? "" : " ")));
  $("made").classList.toggle("wanted", wanted);
  const notes = it.around.map(([name, remedy]) => t("written", { name: said(name), remedy: said(remedy) }));
  if (it.rounded) notes.push(t("roundedBy", it.rounded));
  $("rounded").textContent = notes.join(language === "zh" ? "" : " ");
  readings(it);
}
// A text that fits several formats is shown by the first; a click shows another of its numbers.
function readings(it) {
  const others = it.readings.slice(1).map(([name, id]) => {
    const button = el("button", { type: "button" }, el("b", { text: name }), ` ${id}`);
    button.addEventListener("click", () => { $("text").value = id; showId(); });
    return button;
  });
  const head = others.length ? [el("span", { text: t("orAs", { name: it.readings[0][0] }) })] : [];
  $("readings").replaceChildren(...head, ...others);
}
// Candidate layouts of the ID. A click reads the ID by that layout; a second click returns to the guess.
function chips(it) {
  const buttons = it.guesses.slice(0, 6).map((guess, at) => {
    const [name, share, when] = [el("b", { text: guess.layout }), percent(guess.probability), day(guess.moment)];
    const isChosen = guess.layout === $("chosen").value;
    const button = el("button", { type: "button", title: guess.about, "aria-pressed": isChosen, class: guess.layout === it.layout ? "shown" : "" },
      name, ` ${share} `, el("small", { text: when }));
    button.addEventListener("click", () => {
      $("chosen").value = isChosen ? "" : guess.layout;
      showId();
      $("guesses").children[at].focus(); // the buttons were recreated
    });
    return button;
  });
  const rest = it.other ? [el("span", { text: `${t("otherSystem")} ${percent(it.other)}` })] : [];
  $("guesses").replaceChildren(...buttons, ...rest);
}
function bits(it) {
  const binary = BigInt(it.id).toString(2).padStart(64, "0");
  const top = it.fields[0].at + it.fields[0].bits;
  const groups = top < 64 ? [{ name: "unused", at: top, bits: 64 - top, value: "" }, ...it.fields] : it.fields;
  $("bits").replaceChildren(...groups.map((field) => {
    const cells = [...binary.slice(64 - field.at - field.bits, 64 - field.at)];
    const label = field.name === "unused" ? t("unused") : field.name;
    return el("span", { class: field.name }, el("b", { text: `${label} ${field.bits}` }),
      el("span", { class: "cells" }, ...cells.map((bit) => el("i", { text: bit, class: bit === "1" ? "one" : "" }))));
  }));
  $("bits").setAttribute("aria-label", it.fields.map((field) => `${field.name} ${field.value}`).join(", "));
}

async function newId() {
  try {
    $("text").value = await (await get("genid")).text();
    showId();
  } catch (error) {
    $("id-error").textContent = reason(error, t("noAnswerNow"));
  }
}
function zones() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const names = new Set([own, "Asia/Shanghai", "UTC", "America/New_York", "Europe/Berlin"]);
  $("zone").replaceChildren(...[...names].map((name) => new Option(name)));
  if (own === "UTC") $("zone").value = "Asia/Shanghai"; // a second zone to show
}
function layouts() {
  const had = $("chosen").value;
  const options = ask("layouts").map(([name, about]) => Object.assign(new Option(name), { title: about }));
  $("chosen").replaceChildren(new Option(t("guess"), ""), ...options);
  $("chosen").value = had;
}
function startId() {
  zones();
  for (const id of ["text", "made", "chosen", "zone"]) $(id).addEventListener("input", showId);
  $("example").addEventListener("click", () => { $("text").value = "2407837855670862845"; showId(); });
}
