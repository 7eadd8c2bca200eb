"use strict";
const $ = (id) => document.getElementById(id);
const stored = (() => { try { return localStorage; } catch { return {}; } })(); // may be forbidden
let language = stored.language || (navigator.language.startsWith("zh") ? "zh" : "en");
const t = (key, values = {}) => WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

// Without what changes the direction of writing: names of others read as they are. As vesta_intf::plain.
const plain = (text) => String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
  (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

// An element with attributes and children; `text` is its content.
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = plain(value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const row = (head, ...cells) => {
  const cell = (it) => it instanceof Node ? el("td", {}, it) : el("td", { class: "n", text: it ?? "" });
  return el("tr", {}, head instanceof Node ? head : el("th", { scope: "row", text: head }), ...cells.map(cell));
};
const grouped = (number) => BigInt(number).toLocaleString(language);
const few = (number) => number.toLocaleString(language, { maximumFractionDigits: number < 10 ? 2 : 0 });

// ---- the rule: vesta-intf ----

let rule;
async function load() {
  const packed = Uint8Array.from(atob($("rule").textContent.trim()), (c) => c.charCodeAt(0));
  const bytes = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  rule = (await WebAssembly.instantiate(await bytes.arrayBuffer())).instance.exports;
}
function ask(...lines) {
  const question = new TextEncoder().encode(lines.map((line) => String(line).replaceAll("\n", " ")).join("\n"));
  const at = rule.question(question.length);
  new Uint8Array(rule.memory.buffer, at, question.length).set(question);
  const answer = rule.answer();
  const bytes = new Uint8Array(rule.memory.buffer, answer, rule.answer_bytes());
  return JSON.parse(new TextDecoder().decode(bytes));
}

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

// The moments of a year, a month or a day.
function period(text) {
  const parts = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (!parts) return null;
  const [year, month, date] = parts.slice(1).map((part) => part && Number(part));
  const from = Date.UTC(year, (month ?? 1) - 1, date ?? 1);
  const until = date ? from + 86400000 : month ? Date.UTC(year, month, 1) : Date.UTC(year + 1, 0, 1);
  const exists = utc(from).startsWith(text);
  return exists ? [from, until - 1] : null;
}

function say(text) {
  $("said").textContent = text;
}
async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not a secure context
    const area = document.body.appendChild(el("textarea", { text }));
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  say(t(done ? "copied" : "notCopied"));
  button.textContent = t(done ? "copied" : "notCopied");
  setTimeout(() => { button.textContent = t("copy"); }, 1500);
}
function form(name, text) {
  const button = el("button", { type: "button", text: t("copy"), "aria-label": `${t("copy")}: ${name}` });
  button.addEventListener("click", () => copy(text, button));
  return row(name, el("span", { class: "mono", text }), button);
}

function showId() {
  const text = $("text").value.trim();
  for (const id of ["id-error", "other", "made-error"]) $(id).textContent = "";
  $("explained").hidden = true;
  history.replaceState(null, "", text ? `#id/${encodeURIComponent(text)}` : "#id");
  if (!text) return;
  const made = $("made").value.trim();
  const when = made ? period(made) : ["", ""];
  if (!when) $("made-error").textContent = t("badMade");
  const it = ask("explain", text, $("chosen").value, Date.now(), ...(when ?? ["", ""]));
  if (it.error) {
    $("id-error").textContent = it.error;
    return;
  }
  if (it.kind) {
    const version = it.version ? ` ${t("version")} ${it.version}` : "";
    const moment = it.moment === null ? "" : ` ${t("madeAt")} ${utc(it.moment)}`;
    $("other").textContent = `${it.kind}${version}: ${t("has128")}${moment}`;
    return;
  }
  $("explained").hidden = false;
  verdict(it);
  bits(it);
  const js = Number(it.id);
  const exact = BigInt(js) === BigInt(it.id);
  const facts = [
    [t("made"), `${utc(it.moment)} · ${local(it.moment)} · ${relative(it.moment)}`],
    [t("ends"), day(it.ends)],
    ["JavaScript", t(exact ? "jsExact" : "jsRounds", { js: BigInt(js) })],
  ];
  $("made-at").replaceChildren(...facts.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
  $("fields").replaceChildren(...it.fields.map((field) => {
    const head = el("th", { scope: "row" }, el("span", { class: `swatch ${field.name}` }), field.name);
    const places = field.bits > 1 ? `${field.at + field.bits - 1}–${field.at}` : `${field.at}`;
    return row(head, places, field.value + methodName(field), field.max);
  }));
  const forms = [...it.forms, [t("signed"), it.signed]];
  if (it.tick) forms.push(["SQL", `id BETWEEN ${it.tick[0]} AND ${it.tick[1]}`]);
  $("forms").replaceChildren(...forms.map(([name, text]) => form(name, text)));
  $("guesses").replaceChildren(...it.guesses.slice(0, 6).map((guess) => {
    const percent = Math.round(guess.probability * 100);
    const head = el("th", { scope: "row", text: guess.layout, title: guess.about });
    const line = row(head, percent || "<1", day(guess.moment), guess.machine, guess.seq);
    if (guess.layout === it.layout) line.className = "chosen";
    return line;
  }));
}
const methodName = (field) => {
  const name = field.name === "genMethod" && ["embed", "central", "rest"][field.value];
  return name ? ` (${t(name)})` : "";
};
function verdict(it) {
  const first = it.guesses[0];
  const known = $("chosen").value !== "";
  const sure = first && first.probability >= 0.995;
  const parts = [`${t(known ? "isA" : "mayBe")} ${it.layout}: ${utc(it.moment)}.`];
  if (!known && !first) parts[0] = t("fitsNone");
  if (!known && first && !sure) parts.push(t("notCertain"));
  $("verdict").textContent = parts.join(" ");
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

// ---- a layout ----

const UNITS = { 1000: "millisecond", 10000: "ten-millis", 1000000: "second" };

function showLayout(asked) {
  const epoch = Date.parse($("epoch").value);
  const widths = ["b-time", "b-seq", "b-machine"].map((id) => $(id).value);
  const it = asked ?? ask("layout", ...widths, $("unit").value, epoch);
  $("layout-error").textContent = it.error ?? "";
  $("designed").hidden = Boolean(it.error);
  if (asked && !it.error) {
    for (const field of ["time", "seq", "machine"]) $(`b-${field}`).value = it[field];
    $("unit").value = it.micros;
  }
  for (const field of ["time", "seq", "machine"]) $(`o-${field}`).textContent = $(`b-${field}`).value;
  if (it.error) return;
  const years = few((it.ends - epoch) / 31556952000);
  $("designed-is").textContent = t("result", {
    bits: it.total, years, end: day(it.ends), machines: grouped(it.machines), rate: grouped(it.perSecond),
  });
  const warnings = [[it.total > 63, "over63"], [it.total > 53, "over53"], [it.ends < Date.now(), "ended"]];
  $("warnings").replaceChildren(...warnings.filter(([is]) => is).map(([, key]) => el("li", { text: t(key) })));
  const numbers = { version_bits: 0, type_bits: 0, gen_method_bits: 0, time_bits: it.time, seq_bits: it.seq, machine_bits: it.machine };
  const lines = Object.entries(numbers).map(([name, value]) => `${name} = ${value}`);
  $("toml").textContent = ["[layout.custom]", ...lines, `order = "time-seq-machine"`, `unit = "${UNITS[it.micros]}"`, `epoch = ${epoch}`].join("\n") + "\n";
}
function showDesign() {
  const needs = ["n-years", "n-machines", "n-rate"].map((id) => $(id).value);
  showLayout(ask("design", ...needs, Date.parse($("epoch").value)));
}

// ---- the console ----

const PAUSE = 2000;
const MOST_CELLS = 4096;
let token = "", started = "", before = null, rates = [], events = [], lastEvent = 0, polling = 0;

async function get(path) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers, cache: "no-store" });
  if (response.status === 401 || response.status === 403) throw new Error("needsToken");
  if (!response.ok) throw new Error("noAnswer");
  return response;
}
const json = async (path) => (await get(path)).json();

// Lines `name{label="value"} number`.
function samples(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!parts) continue;
    const labels = {};
    for (const [, name, value] of (parts[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    found.push({ name: parts[1], labels, value: Number(parts[3]) });
  }
  return found;
}
// The counters that the console shows, by what they count.
function counters(text) {
  const now = { at: performance.now(), issued: 0, requests: new Map(), buckets: new Map() };
  for (const { name, labels, value } of samples(text)) {
    if (name === "vesta_ids_issued_total") now.issued += value;
    if (name === "vesta_requests_total" && value) now.requests.set(`${labels.method} ${labels.outcome}`, value);
    if (name === "vesta_request_duration_seconds_bucket") now.buckets.set(labels.le, (now.buckets.get(labels.le) ?? 0) + value);
  }
  return now;
}
// The upper limit of the bucket with the 99th of 100 requests since the last look.
function p99(now, then) {
  const buckets = [...now.buckets].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count - (then?.buckets.get(le) ?? 0)]);
  buckets.sort((a, b) => a[0] - b[0]);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (!all) return "–";
  const limit = buckets.find(([, count]) => count >= all * 0.99)[0];
  return limit === Infinity ? "> 2.5 s" : `≤ ${few(limit * 1000)} ms`;
}

const isLive = () => !$("page-console").hidden && !document.hidden && document.documentElement.dataset.at === "admin";
async function poll() {
  const turn = ++polling;
  if (!isLive()) return;
  try {
    const status = await json("status");
    if (turn !== polling) return;
    // Another process, whose counters and events begin anew.
    if (status.started !== started) [started, before, events, lastEvent] = [status.started, null, [], 0];
    const [metrics, news] = await Promise.all([get("metrics").then((it) => it.text()), json(`events?since=${lastEvent}`)]);
    const pool = status.pool ? await json("pool").catch(() => null) : null;
    const tags = status.segments ? (await json("segments")).segments : null;
    const serials = status.serials ? (await json("serials")).serials : null;
    if (turn !== polling) return;
    [events, lastEvent] = [[...news.events.reverse(), ...events].slice(0, 200), news.last];
    $("console-error").textContent = "";
    $("access").hidden = true;
    $("live").hidden = false;
    showConsole(status, counters(metrics), pool, tags, serials);
  } catch (error) {
    const key = error.message === "needsToken" ? "needsToken" : "noAnswer";
    $("console-error").textContent = t(key);
    $("access").hidden = key !== "needsToken";
    if (key === "needsToken") return; // until there is one
    $("live").classList.add("quiet");
  }
  setTimeout(() => { if (turn === polling) poll(); }, PAUSE);
}

function showConsole(status, now, pool, tags, serials) {
  $("live").classList.remove("quiet");
  const then = before;
  before = now;
  const seconds = then ? (now.at - then.at) / 1000 : 0;
  const rate = then ? (now.issued - then.issued) / seconds : 0;
  rates = [...rates, rate].slice(-60);
  $("what").textContent = [`${status.program} ${status.version}`, status.namespace, status.layout?.name, status.machine?.source].filter(Boolean).join(" · ");
  const used = status.layout ? `${few(rate / status.layout.idsPerSecond * 100)} %` : "–";
  const ready = status.ready ? t("yes") : `${t("no")}: ${status.notReadyBecause}`;
  const tiles = [["ready", ready, status.ready ? "good" : "bad"], ["rate", few(rate)], ["p99", p99(now, then)], ["capacity", used], ["issued", now.issued.toLocaleString(language)]];
  $("tiles").replaceChildren(...tiles.map(([key, text, mood = ""]) => el("div", { id: `tile-${key}` }, el("dt", { text: t(key) }), el("dd", { text, class: mood }))));
  const most = Math.max(...rates, 1);
  $("rates").setAttribute("aria-label", `${t("rates")}: ${few(rate)}`);
  $("scale").textContent = `${t("rates")}: ${t("upTo", { n: few(Math.max(...rates)) })}`;
  $("rates").firstElementChild.setAttribute("points", rates.map((it, at) => `${(60 - rates.length + at) * 120 / 59},${23 - it / most * 22}`).join(" "));
  showMachines(status.machines ?? []);
  $("pool").hidden = !pool;
  if (pool) showPool(pool, status.pool);
  $("segments").hidden = !tags;
  $("tags").replaceChildren(...(tags ?? []).map((tag) => row(tag.key, bar(tag.usedPercent ?? 0, 100, `${few(tag.usedPercent ?? 0)} %`),
    tag.position ?? "–", tag.left ?? "–", tag.step, few(tag.perSecond ?? 0))));
  $("serials").hidden = !serials;
  $("serial-tags").replaceChildren(...(serials ?? []).flatMap((tag) => {
    const line = row(tag.key, tag.pattern, tag.period ?? "–", tag.next, digitsUsed(tag), tag.left, few(tag.perSecond ?? 0), tag.fingerprint ?? "–");
    return tag.ready ? [line] : [line, el("tr", {}, el("td", { class: "bad", colspan: line.cells.length, text: tag.notReadyBecause }))];
  }));
  const requests = [...now.requests].sort((a, b) => b[1] - a[1]);
  $("requests").replaceChildren(...requests.map(([key, count]) => {
    const [method, outcome] = key.split(/ (?=\S+$)/);
    const more = then ? (count - (then.requests.get(key) ?? 0)) / seconds : 0;
    return row(method, outcome, count.toLocaleString(language), few(more));
  }));
  $("events").replaceChildren(...events.map((it) => row(it.time, it.machine, it.kind, it.text)));
}
function bar(value, most, text) {
  return el("span", {}, el("progress", { value, max: most, "aria-label": text }), ` ${text}`);
}
const GROWS = 2 ** 40 - 1; // the last counter of a pattern without an end
function digitsUsed(tag) {
  const last = Number(tag.last);
  if (last >= GROWS) return "–";
  const used = Math.max(Number(tag.next) - 1, 0) / last * 100;
  return bar(used, 100, `${few(used)} %`);
}
let longest = 1;
function showMachines(machines) {
  longest = Math.max(longest, ...machines.map((it) => it.windowLeftMs ?? 0));
  $("machines").replaceChildren(...machines.map((it) => {
    const state = el("span", { class: it.ready ? "good" : "bad", text: it.ready ? t("ready") : it.notReadyBecause });
    const ahead = it.windowLeftMs === null ? "–" : bar(it.windowLeftMs, longest, `${few(it.windowLeftMs / 1000)} s`);
    const renewed = t("ago", { s: few(it.lastRenewalAgeMs / 1000) });
    return row(`${it.machine}`, state, ahead, `${few(it.leadMs)} ms`, renewed, `${it.renewals.ok} (${it.renewals.failed})`, it.epoch);
  }));
}
const LETTERS = { held: "H", expired: "E", released: "R", foreign: "F", lost: "L", free: "·" };
function showPool(pool, usage) {
  const known = Object.keys(LETTERS).filter((state) => usage[state] || state === "held" || state === "free");
  const counts = known.map((state) => `${LETTERS[state]} ${t(state)} ${grouped(usage[state] ?? 0)}`).join(", ");
  $("pool-is").textContent = `${pool.store} · ${pool.range.first}–${pool.range.last} · ${counts}`;
  const records = new Map(pool.records.map((record) => [record.machine, record]));
  const { first, last } = pool.range;
  const cells = last - first < MOST_CELLS ? Array.from({ length: last - first + 1 }, (_, at) => first + at) : [];
  $("grid").setAttribute("aria-label", counts);
  $("grid").replaceChildren(...cells.map((machine) => {
    const record = records.get(machine);
    const state = record?.state ?? "free";
    const who = record?.host ? `, ${record.host}, PID ${record.pid}, ${t("bound")} ${record.boundTime}` : "";
    return el("i", { class: state, text: LETTERS[state] ?? "?", title: `${machine}: ${t(state)}${who}` });
  }));
  $("records").replaceChildren(...pool.records.slice(0, 200).map((it) => row(`${it.machine}`, t(it.state), it.host ?? "–", it.pid ?? "–", it.boundTime ?? "–")));
}

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

async function newId() {
  try {
    $("text").value = await (await get("genid")).text();
    showId();
  } catch (error) {
    $("id-error").textContent = t(error.message === "needsToken" ? "needsToken" : "noAnswer");
  }
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
