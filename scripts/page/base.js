"use strict";
const root = document.getElementById("playground")?.shadowRoot ?? document; // in the book it is a part of a page
const $ = (id) => root.getElementById(id);
const stored = (() => { try { return localStorage; } catch { return {}; } })(); // may be forbidden
let language = stored.language || (navigator.language.startsWith("zh") ? "zh" : "en");
const t = (key, values = {}) => WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

// Chinese translations of texts from the servers and vesta-intf; an untranslated text stays as it is.
const PATTERNS = Object.entries(SENTENCES).map(([english, chinese]) => {
  const parts = english.split("{}").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return [new RegExp(`^${parts.join("(.*?)")}$`, "s"), chinese];
});
function said(text) {
  if (language !== "zh") return text;
  for (const [english, chinese] of PATTERNS) {
    const values = english.exec(text)?.slice(1);
    if (values) return chinese.replace(/\{(\d)\}/g, (_, at) => said(values[at]));
  }
  return text;
}

// Escapes characters that change the writing direction, like vesta_intf::plain.
const plain = (text) => String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
  (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

// An element with attributes and children; `text` is its content.
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = plain(value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
// Fills a table with rows, which are lists of texts and elements. A cell takes the class of its column's heading
// (`n` aligns numbers to the right), and its name, which a narrow window shows beside it.
function fill(id, rows) {
  const headings = $(id).parentElement.tHead?.rows[0].cells;
  $(id).replaceChildren(...rows.map((cells) => el("tr", {}, ...cells.map((it, at) => {
    const heading = headings?.[at];
    const attributes = { class: heading?.className ?? "", "data-name": heading?.textContent ?? "" };
    const cell = at === 0 ? el("th", { scope: "row", ...attributes }) : el("td", attributes);
    cell.append(it instanceof Node ? it : plain(it ?? "–"));
    return cell;
  }))));
}
// Writes the texts of the chosen language.
function words() {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label));
}
// Splits a text so that its times are not broken across lines.
const unbroken = (text) => text.split(/(\d{4}-\d\d-\d\dT\S+Z)/).map((it, at) => at % 2 ? el("span", { class: "whole", text: it }) : it);
const marked = (isBad, text) => el("span", { class: isBad ? "bad" : "", text });
const grouped = (number) => number == null ? null : BigInt(number).toLocaleString(language);
const few = (number) => number.toLocaleString(language, { maximumFractionDigits: number < 10 ? 2 : 0 });
const percent = (share) => `${Math.min(Math.round(share * 100), share < 0.995 ? 99 : 100) || "<1"} %`;

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

// ---- the server ----

const LIMIT = 4000; // timeout of a request in milliseconds
let token = "";
async function get(path) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(LIMIT) });
  if (response.status === 401 || response.status === 403) throw new Error("needsToken");
  if (!response.ok) {
    const problem = await response.json().catch(() => null);
    throw Object.assign(new Error("refused"), { detail: problem?.detail ?? `HTTP ${response.status}` });
  }
  return response;
}
// Reason why a request failed: the server's text if it answered, otherwise `silence`.
function reason(error, silence) {
  return error.message === "needsToken" ? t("needsToken") : error.detail ? said(error.detail) : silence;
}
const json = async (path) => (await get(path)).json();

// ---- the clipboard ----

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
