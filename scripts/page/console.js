// ---- the console ----

const PAUSE = 2000;
const MOST_CELLS = 4096;
let started = "", before = null, events = [], lastEvent = 0, polling = 0;
let answered = null; // when the server last answered

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
// The counters that the console shows, by their meaning.
function counters(text) {
  const now = { at: performance.now(), issued: 0, requests: new Map(), buckets: new Map() };
  for (const { name, labels, value } of samples(text)) {
    if (name === "vesta_ids_issued_total") now.issued += value;
    if (name === "vesta_requests_total" && value) now.requests.set(`${labels.method} ${labels.outcome}`, value);
    if (name === "vesta_request_duration_seconds_bucket") now.buckets.set(labels.le, (now.buckets.get(labels.le) ?? 0) + value);
  }
  return now;
}
// Upper bound of the bucket with the p99 of the requests since the last reading.
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
    // Another process: its counters and events start over.
    if (status.started !== started) [started, before, events, lastEvent] = [status.started, null, [], 0];
    const [metrics, news] = await Promise.all([get("metrics").then((it) => it.text()), json(`events?since=${lastEvent}`)]);
    const pool = status.pool ? await json("pool").catch(() => null) : null;
    const tags = status.segments ? (await json("segments")).tags : null;
    const serials = status.serials ? (await json("serials")).tags : null;
    if (turn !== polling) return;
    [events, lastEvent] = [[...news.events.reverse(), ...events].slice(0, 200), news.lastNumber];
    answered = new Date();
    $("console-error").textContent = "";
    $("access").hidden = true;
    $("live").hidden = false;
    $("live").classList.remove("stale");
    showConsole(status, counters(metrics), pool, tags, serials);
  } catch (error) {
    if (turn !== polling) return;
    const needsToken = error.message === "needsToken";
    const since = answered?.toLocaleTimeString(locale());
    $("console-error").textContent = reason(error, t(since ? "noAnswerSince" : "noAnswer", { since }));
    $("access").hidden = !needsToken;
    showStale();
    if (needsToken) return; // until one is entered
  }
  setTimeout(() => { if (turn === polling) poll(); }, PAUSE);
}
// The last reading stays, in grey; the current state is unknown.
function showStale() {
  $("live").classList.add("stale");
  for (const it of $("live").querySelectorAll(".good")) it.textContent = t("unknown");
}

function showConsole(status, now, pool, tags, serials) {
  const then = before && now.at - before.at < 2 * PAUSE ? before : null; // not that from before a pause
  before = now;
  const seconds = then ? (now.at - then.at) / 1000 : 0;
  const rate = showRates(status.rates);
  const source = said(status.machineSource ?? "");
  $("what").textContent = [`${status.program} ${status.version}`, status.namespace, status.layout, source].filter(Boolean).join(" · ");
  const used = rate !== null && status.layout ? `${few(rate / status.capacityPerSecond * 100)} %` : "–";
  const ready = status.ready ? t("yes") : `${t("no")}: ${said(status.notReadyBecause)}`;
  const tiles = [["ready", ready, status.ready ? "good" : "bad"], ["rate", rate === null ? "–" : few(rate)], ["p99", p99(now, then)], ["capacity", used], ["issued", now.issued.toLocaleString(language)]];
  $("tiles").replaceChildren(...tiles.map(([key, text, mood = ""]) => el("div", { id: `tile-${key}` }, el("dt", { text: t(key) }), el("dd", { text, class: mood }))));
  showMachines(status.machines ?? []);
  $("pool").hidden = !pool;
  if (pool) showPool(pool, status.pool);
  $("segments").hidden = !tags;
  showTags(tags ?? []);
  $("serials").hidden = !serials;
  showSerials(serials ?? []);
  const requests = [...now.requests].sort((a, b) => b[1] - a[1]);
  fill("requests", requests.map(([key, count]) => {
    const [method, outcome] = key.split(/ (?=\S+$)/);
    const more = then ? (count - (then.requests.get(key) ?? 0)) / seconds : 0;
    return [method, marked(outcome !== "OK", outcome), count.toLocaleString(language), few(more)];
  }));
  fill("events", events.map((it) => [it.moment, it.machine, marked(TROUBLES.has(it.kind), said(it.kind)), said(it.text)]));
}
const TROUBLES = new Set(["not-claimed", "not-renewed", "fenced", "went-back", "sealed", "clock", "doubt"]);

const EVERY = 2000; // between two rates of the server
// False if unknown time lies between them.
const areNext = (older, newer) => older.ageMs - newer.ageMs < 2 * EVERY;
// Draws the rates, each at its time, and returns the current one, if it is known.
function showRates(rates) {
  const last = rates.at(-1);
  const rate = last && areNext(last, { ageMs: 0 }) ? last.perSecond : null;
  const highest = Math.max(...rates.map((it) => it.perSecond), 0);
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 10)));
  const top = [1, 2, 5, 10].find((it) => it * power >= highest) * power; // a round number
  $("scale").replaceChildren(`${t("rates")}: `, el("b", { text: rate === null ? "–" : few(rate) }), last ? t("atMost", { n: few(highest) }) : "");
  $("axis").replaceChildren(...[top, top / 2, 0].map((it) => el("span", { text: few(it) })));
  const line = rates.map((it, at) => {
    const x = 120 - it.ageMs / 1000, y = 40 - it.perSecond / top * 40;
    return at && areNext(rates[at - 1], it) ? `L${x} ${y}` : `M${x - EVERY / 1000} ${y}H${x}`;
  });
  $("rates").lastElementChild.setAttribute("d", line.join(""));
  $("rates").setAttribute("aria-label", $("scale").textContent);
  return rate;
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
function showTags(tags) {
  fill("tags", tags.map((tag) => [tag.tag, bar(tag.usedPercent ?? 0, 100, `${few(tag.usedPercent ?? 0)} %`),
    grouped(tag.next), grouped(tag.left), grouped(tag.step), few(tag.perSecond ?? 0)]));
  showTroubles("tags", tags);
}
function showSerials(serials) {
  fill("serial-tags", serials.map((tag) => [tag.tag, tag.pattern, tag.period, grouped(tag.next), digitsUsed(tag), grouped(tag.left), few(tag.perSecond ?? 0), tag.fingerprint]));
  showTroubles("serial-tags", serials);
}
// The reason below the row of each tag that issues no numbers.
function showTroubles(id, tags) {
  [...$(id).rows].forEach((line, at) => {
    const { ready, notReadyBecause } = tags[at];
    if (!ready) line.after(el("tr", {}, el("td", { class: "bad", colspan: line.cells.length, text: said(notReadyBecause) })));
  });
}
let longest = 1;
function showMachines(machines) {
  longest = Math.max(longest, ...machines.map((it) => it.windowLeftMs ?? 0));
  fill("machines", machines.map((it) => {
    const state = el("span", { class: it.ready ? "good" : "bad", text: it.ready ? t("ready") : said(it.notReadyBecause) });
    const ahead = it.windowLeftMs === undefined ? null : bar(it.windowLeftMs, longest, `${few(it.windowLeftMs / 1000)} s`);
    const { ok, failed } = it.renewals;
    return [it.machine, state, ahead, `${few(it.leadMs)} ms`, t("ago", { s: few(it.lastRenewalAgeMs / 1000) }),
      grouped(ok), marked(failed, grouped(failed)), it.claim];
  }));
}

const LETTERS = { held: "H", expired: "E", released: "R", foreign: "F", lost: "L", free: "·" };
function showPool(pool, usage) {
  const known = Object.keys(LETTERS).filter((state) => usage[state] || state === "held" || state === "free");
  const counts = known.map((state) => [state, `${t(state)} ${grouped(usage[state] ?? 0)}`]);
  const legend = counts.map(([state, text]) => el("span", {}, el("i", { class: state, text: LETTERS[state] }), text));
  $("pool-is").replaceChildren(`${pool.store}, ${pool.firstMachine}–${pool.lastMachine}`, ...legend);
  const records = new Map(pool.records.map((record) => [record.machine, record]));
  const { firstMachine: first, lastMachine: last } = pool;
  const cells = last - first < MOST_CELLS ? Array.from({ length: last - first + 1 }, (_, at) => first + at) : [];
  $("grid").setAttribute("aria-label", counts.map(([, text]) => text).join(", "));
  $("grid").replaceChildren(...columns(cells.length), ...cells.flatMap((machine, at) => {
    const record = records.get(machine);
    const state = record?.state ?? "free";
    const who = record?.host ? `, ${record.host}, PID ${record.pid}, ${t("bound")} ${record.boundTime}` : "";
    const cell = el("i", { class: state, text: LETTERS[state] ?? "?", title: `${machine}: ${t(state)}${who}` });
    return at % 32 ? [cell] : [el("b", { class: at % 64 ? "narrow" : "", text: machine }), cell];
  }));
  fill("records", pool.records.slice(0, 200).map((it) => [it.machine, t(it.state), it.host, it.pid, it.boundTime]));
}
// Above each eighth column, its offset from the number before the row. A narrow window has 32 columns, not 64.
function columns(cells) {
  const every = [0, 8, 16, 24, 32, 40, 48, 56];
  return cells ? [el("b"), ...every.map((at) => el("u", { class: at < 32 ? "" : "wider", text: `+${at}` }))] : [];
}
